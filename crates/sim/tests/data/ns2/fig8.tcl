# ns fig8.tcl VARIANT SINK Q SEED SECONDS: network-coded-tcp-2012, Fig. 8, two FTP flows over four links
# of 2 Mbit/s, 100 ms and 200 packets; each link loses a packet with probability Q in each direction.
# VARIANT is TCP (Tahoe), TCP/Reno, TCP/Newreno, TCP/Sack1 or TCP/Vegas, SINK is TCPSink, TCPSink/Sack1
# or TCPSink/DelAck. Prints for each flow the goodput in Mbit/s without headers. The seeds of the
# figures in docs/decisions/0005-tcp-agents.md are 1 to 100, for 1000 seconds.
set variant [lindex $argv 0]; set sinkkind [lindex $argv 1]; set q [lindex $argv 2]; set seed [lindex $argv 3]; set T [lindex $argv 4]
ns-random $seed
set ns [new Simulator]
for {set i 0} {$i<5} {incr i} { set n($i) [$ns node] }
set rng [new RNG]; $rng seed $seed
for {set i 0} {$i<4} {incr i} {
  set j [expr $i+1]
  $ns duplex-link $n($i) $n($j) 2Mb 100ms DropTail
  $ns queue-limit $n($i) $n($j) 200
  $ns queue-limit $n($j) $n($i) 200
  foreach {a b} [list $i $j $j $i] {
    set em [new ErrorModel]; $em set rate_ $q; $em unit pkt
    set rv [new RandomVariable/Uniform]; $rv use-rng $rng
    $em ranvar $rv
    $em drop-target [new Agent/Null]
    if {$q > 0} { $ns link-lossmodel $em $n($a) $n($b) }
  }
}
for {set f 0} {$f<2} {incr f} {
  set tcp($f) [new Agent/$variant]
  $tcp($f) set packetSize_ 1000
  $tcp($f) set window_ 50
  set sink($f) [new Agent/$sinkkind]
  $ns attach-agent $n(0) $tcp($f); $ns attach-agent $n(4) $sink($f)
  $ns connect $tcp($f) $sink($f)
  set ftp($f) [new Application/FTP]; $ftp($f) attach-agent $tcp($f)
  $ns at 0.0 "$ftp($f) start"
}
proc fin {} { global tcp T
  foreach f {0 1} { puts "ack [$tcp($f) set ack_] goodput [expr ([$tcp($f) set ack_]+1)*8000.0/$T/1e6] nrexmit [$tcp($f) set nrexmit_] ndata [$tcp($f) set ndatapack_]" }
  exit 0 }
$ns at $T fin
$ns run
