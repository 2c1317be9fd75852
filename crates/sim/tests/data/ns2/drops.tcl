# ns drops.tcl VARIANT SINK WINDOW PACKETS "DROPS": one flow over one link of 800 kbit/s and 100 ms each
# way, packets of 1000 bytes, acknowledgments of 40; DROPS numbers the transmissions (from 0) that the
# link loses. Prints each transmission and each change of the window.
set variant [lindex $argv 0]; set sinkkind [lindex $argv 1]; set window [lindex $argv 2]
set packets [lindex $argv 3]; set drops [lindex $argv 4]
remove-all-packet-headers
add-packet-header IP TCP Flags
ns-random 1
set ns [new Simulator]
set a [$ns node]; set b [$ns node]
$ns duplex-link $a $b 800kb 100ms DropTail
$ns queue-limit $a $b 1000
$ns queue-limit $b $a 1000
if {[llength $drops] > 0} {
  set em [new ErrorModel/List]
  $em droplist $drops
  $em drop-target [new Agent/Null]
  $ns link-lossmodel $em $a $b
}
set tcp [new Agent/TCP$variant]
foreach {name value} "packetSize_ 1000 window_ $window windowInit_ 2 syn_ false delay_growth_ false \
  useHeaders_ false tcpTick_ 0.0004" { $tcp set $name $value }
set sink [new Agent/TCPSink$sinkkind]
$sink set packetSize_ 40
$ns attach-agent $a $tcp; $ns attach-agent $b $sink; $ns connect $tcp $sink
set out [open [lindex $argv 5] w]
$tcp attach $out; $tcp trace cwnd_
$ns trace-queue $a $b $out
$ns at 0.0 "$tcp advance $packets"
$ns at 600.0 "exit 0"
$ns run
