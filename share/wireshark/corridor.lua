-- Wireshark dissector for Corridor, wire format version 8 (crates/proto/src/wire.rs).
--
-- It reads two things:
--   * frames of real stations (EtherType 0x88b5, or UDP): the header is in clear, the rest encrypted;
--   * captures of `corridor sim trace` (EtherType 0x88b6): a capture header with what happened to
--     the frame on the air (crates/sim/src/capture/radio.rs), then the decrypted frame.
--
-- Install: copy it into Wireshark's folder of personal Lua plugins (Help, About, Folders), or
--   wireshark -X lua_script:corridor.lua capture.pcapng
--
-- No length in a frame is trusted: everything is read through a cursor that never passes the end.
-- Runs with the Lua of Wireshark 3.6 to 4.x (5.2 to 5.4), hence no bitwise operators.

local VERSION = 8
local ETHERTYPE_SEALED = 0x88b5
local ETHERTYPE_CAPTURE = 0x88b6
local HEADER_LEN = 7
local TAG_LEN = 16
local CAPTURE_MAGIC = 0x436f7243 -- "CorC"
local CAPTURE_VERSION = 2
local CAPTURE_FIXED_LEN = 27
local HEARER_LEN = 5
local ACK_BLOCKS_MAX = 32
local PEERS_MAX = 8
local ECHOES_MAX = 8
local BLOCK_SIZE_MAX = 1024
local NO_RANK = 0xffff
local NO_COUNTER = 0xffffffff

local DELAY_UNIT_NS = 16384

-- Forms of a frame, and kinds of the chunks in it.
local CHUNKED, GREETING, KEY_EXCHANGE = 0, 2, 3
local FRAME_FORMS = { [CHUNKED] = "chunks", [GREETING] = "greeting", [KEY_EXCHANGE] = "key exchange" }
local KINDS = { [1] = "ENC", [2] = "ACK", [3] = "REPORT", [4] = "HELLO", [5] = "PLAIN", [6] = "WIN",
  [7] = "WINACK", [8] = "LINK", [9] = "PROBE", [10] = "ECHOES", [11] = "CHALLENGE", [12] = "ANSWER",
  [13] = "GOODBYE", [14] = "GOODBYE HEARD", [15] = "RELAYED", [16] = "PART" }
local CHUNKS_MAX = 8
-- Frames by which stations with key pairs agree on a secret: names and lengths by step.
local STEPS = { [1] = "initiation", [2] = "response", [3] = "cookie", [4] = "with a cookie",
  [5] = "handout" }
local STEP_LENS = { [1] = 128, [2] = 72, [3] = 36, [5] = 136 }
local COOKIE, WITH_COOKIE, WITH_COOKIE_LEN = 3, 4, 20
local MAC_LEN = 16
local INSTEAD = { [0] = "coded as the greeting says", [1] = "coded between TCP and IP",
  [2] = "not coded", [3] = "by relays that combine them" }
local MODES = { [0] = "blocks", [1] = "sliding window" }
local WINDOW_FORMS = { [0] = "source symbol", [1] = "coded symbol", [2] = "source symbol of a lane",
  [3] = "coded symbol of a lane" }
-- The maximum number of lanes: its logarithm to base 2.
local LANES_LOG_MAX = 4
local FORMS = { [0] = "source symbol", [1] = "coded symbol, seed of its vector",
  [2] = "recoded symbol, vector in full", [3] = "source symbol with a tag from end to end" }
local END_TAG_LEN = 8
local FIELDS = { [1] = "GF(2)", [4] = "GF(2^4)", [8] = "GF(2^8)" }
-- Kinds of frames of XOR relays.
local RELAYED_KINDS = { [1] = "packet", [2] = "two packets, combined", [3] = "announcement",
  [4] = "reports", [5] = "packet that is to be reported", [6] = "repair",
  [7] = "two packets, combined, that are to be reported" }
local RELAYED_REPORTS, RELAYED_REPAIR = 4, 6
local FATES = { [0] = "lost", [1] = "heard", [2] = "innovative", [3] = "dependent", [4] = "late",
  [5] = "refused", [6] = "not for it", [7] = "rejected", [8] = "on its way" }
local LOST, HEARD, INNOVATIVE, DEPENDENT, LATE, REFUSED, REJECTED = 0, 1, 2, 3, 4, 5, 7

local corridor = Proto("corridor", "Corridor")

corridor.prefs.udp_port = Pref.uint("UDP port", 4242,
  "Port of stations that send over UDP; 0 for none. Others by Decode As.")

-- ---- fields ------------------------------------------------------------------------------------

local F = {}
local fields = {}

local function field(key, make, abbreviation, ...)
  F[key] = make("corridor." .. abbreviation, ...)
  fields[#fields + 1] = F[key]
end

local uint8, uint16, uint32 = ProtoField.uint8, ProtoField.uint16, ProtoField.uint32
local uint64, bytes, bool = ProtoField.uint64, ProtoField.bytes, ProtoField.bool
local double = ProtoField.double

-- What happened on the air: only in captures of the simulator.
field("air", ProtoField.none, "air", "On the air")
field("air_version", uint8, "air.version", "Version of the capture header")
field("air_length", uint16, "air.length", "Length of the capture header", base.UNIT_STRING,
  { " bytes" })
field("air_unsealed", bool, "air.unsealed", "Unsealed", 8, nil, 0x01)
field("air_to_all", bool, "air.to_all", "To all in reach", 8, nil, 0x02)
field("air_from", uint16, "air.from", "From station")
field("air_to", uint16, "air.to", "To station")
field("air_retransmissions", uint16, "air.retransmissions", "Retransmissions before this one")
field("air_field", uint8, "air.field", "Field of the flow", base.DEC, FIELDS)
field("air_block_size", uint16, "air.block_size", "Block size of the flow", base.UNIT_STRING,
  { " symbols" })
field("air_airtime", uint64, "air.airtime", "Airtime", base.UNIT_STRING, { " ns" })
field("air_reach", uint16, "air.reach", "Stations in reach")
field("air_heard", uint16, "air.heard", "Stations that heard it")
field("hearer", ProtoField.none, "air.hearer", "Station in reach")
field("hearer_station", uint16, "air.hearer.station", "Station")
field("hearer_fate", uint8, "air.hearer.fate", "Fate", base.DEC, FATES)
field("hearer_rank", uint16, "air.hearer.rank", "Rank afterwards")

-- Header, in clear.
field("version", uint8, "version", "Version", base.DEC, nil, 0xf0)
field("frame_form", uint8, "frame_form", "Form", base.DEC, FRAME_FORMS, 0x0f)
field("session", uint16, "session", "Session (first two bytes of its id)", base.HEX)
field("counter", uint32, "counter", "Frame counter")
field("sealed", bytes, "sealed", "Sealed body")
field("tag", bytes, "tag", "AEAD tag")
field("padding", bytes, "padding", "Padding")

-- Chunks.
field("chunk", ProtoField.none, "chunk", "Chunk")
field("followed", bool, "chunk.followed", "Another chunk follows", 8, nil, 0x80)
field("type", uint8, "type", "Kind", base.DEC, KINDS, 0x7f)
field("chunk_length", uint16, "chunk.length", "Length of the body", base.UNIT_STRING, { " bytes" })

-- Key exchange.
field("step", uint8, "key_exchange.step", "Step", base.DEC, STEPS)
field("exchange", uint32, "key_exchange.exchange", "Exchange", base.HEX)
field("noise", bytes, "key_exchange.noise", "Noise message (IKpsk2)")
field("mac", bytes, "key_exchange.mac", "MAC")
field("cookie_answers", bytes, "cookie.answers", "Answers")
field("cookie", bytes, "cookie.cookie", "Cookie")
field("cookie_mac", bytes, "cookie.mac", "MAC under a cookie")
field("cookie_message", bytes, "cookie.message", "Message")

-- Relays.
field("relayed_to", uint16, "relayed.to", "Next hop (0: all in reach)")
field("relayed_length", uint16, "relayed.length", "Length of the relay's frame", base.UNIT_STRING,
  { " bytes" })
field("relayed_kind", uint8, "relayed.kind", "Kind of the relay's frame", base.DEC, RELAYED_KINDS)
field("relayed_counter", uint32, "relayed.counter", "Counter of the relay's frames")
field("relayed_reports", uint8, "relayed.reports", "Reports of what came of neighbours' frames")
field("relayed_report_node", uint16, "relayed.report.node", "Whose frames")
field("relayed_report_newest", uint16, "relayed.report.newest", "Counter of the newest, lower half")
field("relayed_report_came", uint32, "relayed.report.came",
  "This one and the 31 before it, the newest the lowest bit", base.HEX)
field("relayed_newest", uint16, "relayed.newest", "Counter of the newest frame, lower half")
field("relayed_covered", uint32, "relayed.covered",
  "Packets of this one and the 31 before it, the newest the lowest bit", base.HEX)
field("relayed_rest", bytes, "relayed.rest", "Rest of the relay's frame")

-- ENC: a symbol of a block.
field("flow", uint16, "flow", "Flow (station whose packets these are)")
field("block", uint16, "block", "Block")
field("form", uint16, "form", "Form", base.DEC, FORMS, 0xc000)
field("index", uint16, "index", "Index of the source symbol", base.DEC, nil, 0x3fff)
field("count", uint16, "count", "Symbols combined", base.DEC, nil, 0x3fff)
field("seed", uint32, "seed", "Seed of the coding vector", base.HEX)
field("recoded_count", uint16, "count", "Symbols combined", base.DEC, nil, 0x07ff)
field("run", uint16, "run", "Run of the encoder", base.HEX)
field("coefficients", bytes, "coefficients", "Coding vector")
field("nonzero", uint16, "coefficients.nonzero", "Coefficients that are not zero")
field("symbol", bytes, "symbol", "Symbol")
field("symbol_length", uint16, "symbol.length", "Length of the symbol", base.UNIT_STRING,
  { " bytes" })
field("rank", uint16, "rank", "Rank at the addressed station afterwards")
field("end_tag", bytes, "end_tag", "Tag from end to end")
field("packet", bytes, "packet", "Packet")
field("packet_no_order", bool, "packet.no_order", "May overtake packets sent before it", 16, nil,
  0x8000)
field("packet_difference", bool, "packet.difference",
  "A difference to the packet before it in its flow", 16, nil, 0x4000)
field("packet_length", uint16, "packet.length", "Length of the packet", base.UNIT_STRING,
  { " bytes" }, 0x3fff)
field("packet_whole", bytes, "packet.whole", "Packet made whole")

-- A packet whose headers are a difference: docs/decisions/0012-header-compression.md.
field("difference", bytes, "difference", "Difference")
field("difference_place", uint8, "difference.place", "Place where the flow is remembered")
field("difference_mask", uint8, "difference.mask", "What differs", base.HEX)
field("differs_sequence", bool, "difference.has.sequence", "Sequence number", 8, nil, 0x01)
field("differs_ack", bool, "difference.has.ack", "Acknowledgement", 8, nil, 0x02)
field("differs_window", bool, "difference.has.window", "Window", 8, nil, 0x04)
field("differs_flags", bool, "difference.has.flags", "Flags", 8, nil, 0x08)
field("differs_ident", bool, "difference.has.ident", "Identification", 8, nil, 0x10)
field("differs_stamp", bool, "difference.has.stamp", "Timestamp", 8, nil, 0x20)
field("differs_echo", bool, "difference.has.echo", "Timestamp echoed", 8, nil, 0x40)
field("differs_class", bool, "difference.has.class", "Type of service or traffic class", 8, nil,
  0x80)
field("difference_checksum", uint16, "difference.checksum", "Checksum of TCP", base.HEX)
field("difference_sequence", uint32, "difference.sequence", "Sequence number")
field("difference_ack", uint32, "difference.ack", "Acknowledgement")
field("difference_window", uint16, "difference.window", "Window")
field("difference_flags", uint8, "difference.flags", "Flags", base.HEX)
field("difference_ident", uint16, "difference.ident", "Identification")
field("difference_stamp", uint32, "difference.stamp", "Timestamp ahead of the last by")
field("difference_echo", uint32, "difference.echo", "Timestamp echoed ahead of the last by")
field("difference_class", uint8, "difference.class", "Type of service or traffic class", base.HEX)
field("difference_payload", bytes, "difference.payload", "Data")

-- ACK: feedback about blocks.
field("ack", ProtoField.none, "ack", "Acknowledgement")
field("ack_flow", uint16, "ack.flow", "For the encoder of flow")
field("ack_base", uint16, "ack.base", "First block not finished")
field("ack_encoder_counter", uint32, "ack.encoder_counter", "Newest counter heard of the encoder")
field("ack_helper_counter", uint32, "ack.helper_counter", "Newest counter heard of the helper")
field("ack_e2", double, "ack.e2", "Erasure ratio helper to decoder (e2)")
field("ack_e3", double, "ack.e3", "Erasure ratio encoder to decoder (e3)")
field("ack_blocks", uint8, "ack.blocks", "Blocks with something to tell")
field("ack_entry", ProtoField.none, "ack.entry", "Block")
field("ack_block", uint16, "ack.block", "Block")
field("ack_given_up", bool, "ack.given_up", "Given up", 16, nil, 0x8000)
field("ack_rank", uint16, "ack.rank", "Rank", base.DEC, nil, 0x7fff)
field("ack_known", uint16, "ack.known", "Source symbols known to exist")
field("ack_bitmap", bytes, "ack.bitmap", "Bitmap of decoded symbols, lowest bit first")
field("ack_decoded", uint16, "ack.decoded", "Symbols decoded")

-- WIN: a symbol of a sliding window.
field("window_paired", bool, "window.paired", "Left together with the frame before it", 8, nil, 0x80)
field("window_flow", uint8, "window.flow", "Flow of the sender's", base.DEC, nil, 0x7f)
field("window_form", uint16, "window.form", "Form", base.DEC, WINDOW_FORMS, 0xc000)
field("window_distance", uint16, "window.distance", "Symbols before it that the sender holds",
  base.DEC, nil, 0x3fff)
field("window_count", uint16, "window.count", "Symbols combined", base.DEC, nil, 0x3fff)
-- If symbols are dealt to several lanes.
field("window_lanes", uint16, "window.lanes_log", "Lanes, logarithm", base.DEC, nil, 0x3800)
field("window_lane_distance", uint16, "window.distance",
  "Symbols of its lane before it that the sender holds", base.DEC, nil, 0x07ff)
field("window_lane_count", uint16, "window.count", "Symbols combined", base.DEC, nil, 0x07ff)
field("window_id", uint32, "window.id", "Id of the symbol")
-- Of coded symbols: lowest bits of ids.
field("window_first", uint32, "window.first", "Id of the first symbol combined", base.DEC, nil,
  0xfffff000)
field("window_last", uint32, "window.last", "Id of the last symbol combined")
field("window_serial", uint32, "window.serial", "Number among coded symbols", base.DEC, nil, 0xfff)

-- A part of a chunk.
field("part_whole", uint16, "part.whole", "Number of the whole")
field("part_length", uint16, "part.length", "Length of the whole", base.UNIT_STRING, { " bytes" })
field("part_at", uint16, "part.at", "Where in it the part begins")
field("part_bytes", bytes, "part.bytes", "Part")

-- Feedback about frames, whatever they contain.
field("link", ProtoField.none, "link", "Feedback about a link")
field("link_half_duplex", uint8, "link.half_duplex", "Both directions share the channel", base.DEC,
  nil, 0x80)
field("link_overtakes", uint8, "link.overtakes", "How late frames are is behind it", base.DEC,
  nil, 0x40)
field("link_has_gap", uint8, "link.has_gap", "The gap of a pair is behind it", base.DEC, nil, 0x20)
field("link_path", uint8, "link.path", "Path", base.DEC, nil, 0x1f)
field("link_counter", uint32, "link.counter", "Newest counter of a frame with a symbol")
field("link_delay", uint32, "link.delay", "How long ago that frame came", base.UNIT_STRING, { " ns" })
field("link_received_at", uint32, "link.received_at", "When it came, by the receiver's clock",
  base.UNIT_STRING, { " us" })
field("link_frames", uint32, "link.frames", "Frames with symbols received so far")
field("link_loss", double, "link.loss", "Share of the frames lost on the way there")
field("link_lateness", uint32, "link.lateness", "How late frames are that others have overtaken",
  base.UNIT_STRING, { " ns" })
field("link_gap", uint32, "link.gap", "Gap between the frames of a pair", base.UNIT_STRING, { " ns" })
field("link_gap_number", uint8, "link.gap_number", "Number of the gap")

-- WINACK, and feedback piggybacked on a WIN.
field("window_ack", ProtoField.none, "window.ack", "Acknowledgement of a window")
field("window_ack_flow", uint8, "window.ack.flow", "Flow of the receiver's")
field("window_ack_next", uint32, "window.ack.next", "First symbol not delivered or skipped")
field("window_ack_lanes", uint16, "window.ack.lanes_log", "Lanes, logarithm", base.DEC, nil, 0xe000)
field("window_ack_span", uint16, "window.ack.span", "Symbols of the lane known from there on",
  base.DEC, nil, 0x1fff)
field("window_ack_lane", uint16, "window.ack.lane", "Lane", base.DEC, nil, 0xf000)
field("window_ack_deficit", uint16, "window.ack.deficit", "Symbols lacking to decode all known",
  base.DEC, nil, 0x0fff)
field("window_ack_useless", uint16, "window.ack.useless", "Symbols so far that brought nothing")
field("window_ack_has_credit", uint8, "window.ack.has_credit", "A credit is behind the bitmap", base.DEC, nil, 0x80)
field("window_ack_length", uint8, "window.ack.length", "Length of the bitmap", base.DEC, nil, 0x7f)
field("window_ack_bitmap", bytes, "window.ack.bitmap", "Bitmap of needed symbols, lowest bit first")
field("window_ack_needed", uint16, "window.ack.needed", "Symbols said to be needed")
field("window_ack_credit", uint16, "window.ack.credit", "New symbols from the first on that there is room for")

-- REPORT.
field("report_count", uint8, "report.count", "Encoders heard")
field("report_flow", uint16, "report.flow", "Encoder")
field("report_e1", double, "report.e1", "Erasure ratio encoder to helper (e1)")
field("report_frames", uint32, "report.frames", "Frames so far that were for its station")

-- PROBE.
field("probe_round", uint16, "probe.round", "Round")
field("probe_to", uint16, "probe.to", "To station")
field("probe_token", bytes, "probe.token", "Token")
field("probe_before", uint8, "probe.before", "Probes of the round just before")
field("probe_count", uint8, "probe.count", "Probes echoed")
field("probe_length", uint16, "probe.length", "Length of the frame that arrived",
  base.UNIT_STRING, { " bytes" })

-- HELLO.
field("sender", uint16, "hello.sender", "Sender")
field("session_id", bytes, "hello.session", "Session id")
field("instance", uint64, "hello.instance", "Instance (random per start)", base.HEX)
field("hello_field", uint8, "hello.field", "Field of the sender's flow", base.DEC, FIELDS)
field("hello_block_size", uint16, "hello.block_size", "Block or window size of the sender's flow",
  base.UNIT_STRING, { " symbols" })
field("hello_symbol_size", uint16, "hello.symbol_size", "Longest symbol of the sender's flow",
  base.UNIT_STRING, { " bytes" })
field("hello_mode", uint8, "hello.mode", "Coding of the sender's flow", base.DEC, MODES)
field("hello_base", uint32, "hello.base", "Oldest block or symbol held")
field("hello_count", uint8, "hello.count", "Sessions spoken to")
field("to", ProtoField.none, "hello.to", "To a session")
field("to_station", uint16, "hello.to.station", "Station")
field("to_session", bytes, "hello.to.session", "Session id")
field("to_challenge", bytes, "hello.to.challenge", "Challenge")
field("to_answer", bytes, "hello.to.answer", "Answer")
field("to_accepted", bool, "hello.to.accepted", "Accepted", 8, nil, 0x01)
field("to_asks", bool, "hello.to.asks", "Asks for an answer", 8, nil, 0x02)
field("to_instead", uint8, "hello.to.instead", "The sender's packets", base.DEC, INSTEAD, 0x0c)
field("to_lanes", uint8, "hello.to.lanes_log", "Lanes that it takes, logarithm", base.DEC, nil, 0x70)
field("told_feedback", uint16, "hello.feedback", "Longest that its feedback waits, ms")
field("told_hello", uint16, "hello.interval", "Between its HELLOs, ms")
field("to_lane_size", uint16, "hello.to.lane_size", "Symbols of a lane that it takes",
  base.UNIT_STRING, { " symbols" })

corridor.fields = fields

local SEQUENCE, UNDECODED, MALFORMED =
  expert.group.SEQUENCE, expert.group.UNDECODED, expert.group.MALFORMED
local CHAT, NOTE, WARN, ERROR =
  expert.severity.CHAT, expert.severity.NOTE, expert.severity.WARN, expert.severity.ERROR

local X = {
  malformed = ProtoExpert.new("corridor.malformed", "Malformed frame", MALFORMED, ERROR),
  truncated = ProtoExpert.new("corridor.truncated", "Captured in part only", UNDECODED, WARN),
  sealed = ProtoExpert.new("corridor.sealed.body",
    "Sealed: a capture of the simulator shows what is inside", UNDECODED, CHAT),
  field = ProtoExpert.new("corridor.field.unknown",
    "Field of the flow not known: coding vector and symbol cannot be told apart", UNDECODED, NOTE),
  lost = ProtoExpert.new("corridor.air.lost", "Not heard by the addressed station", SEQUENCE, NOTE),
  unheard = ProtoExpert.new("corridor.air.unheard", "Heard by nobody", SEQUENCE, NOTE),
  again = ProtoExpert.new("corridor.air.retransmission", "Retransmission by the link layer",
    SEQUENCE, NOTE),
  dependent = ProtoExpert.new("corridor.air.dependent", "Dependent: raised no rank", SEQUENCE, NOTE),
  late = ProtoExpert.new("corridor.air.late", "Of a block that was finished", SEQUENCE, NOTE),
  refused = ProtoExpert.new("corridor.air.refused", "Refused: index or length cannot be",
    SEQUENCE, WARN),
  rejected = ProtoExpert.new("corridor.air.rejected",
    "Rejected: replayed, not authentic, or of a session not accepted", SEQUENCE, NOTE),
  relative = ProtoExpert.new("corridor.difference.unknown",
    "Difference to the packet before it in its flow, which is not in the capture", UNDECODED, NOTE),
  given_up = ProtoExpert.new("corridor.ack.given_up.block", "Block given up by the decoder",
    SEQUENCE, WARN),
}

corridor.experts = {
  X.malformed, X.truncated, X.sealed, X.field, X.lost, X.unheard, X.again, X.dependent, X.late,
  X.refused, X.rejected, X.relative, X.given_up,
}

-- ---- reading -----------------------------------------------------------------------------------

-- A cursor over tvb[at, stop) that never passes the end: `take` returns nil instead.
local function cursor(tvb, at, stop)
  return { tvb = tvb, at = at, stop = math.min(stop, tvb:len()) }
end

local function left(c)
  return math.max(c.stop - c.at, 0)
end

local function take(c, len)
  if len <= 0 or left(c) < len then
    -- The position of anything that follows is unknown.
    c.stop = c.at
    return nil
  end
  local range = c.tvb:range(c.at, len)
  c.at = c.at + len
  return range
end

-- The number in a range, as an integer also in newer versions of Lua.
local function uint(range)
  return math.floor(range:uint())
end

-- Adds the next `len` bytes as a field; returns the number, or the range of a long field, or nil at
-- the end of the frame.
local function add(c, tree, key, len)
  local range = take(c, len)
  if range == nil then
    return nil
  end
  tree:add(F[key], range)
  if len <= 4 then
    return uint(range)
  end
  return range
end

-- The same for a 16-bit ratio.
local function add_ratio(c, tree, key)
  local range = take(c, 2)
  if range == nil then
    return nil
  end
  local ratio = uint(range) / 65535
  tree:add(F[key], range, ratio)
  return ratio
end

-- A subtree that ends at the cursor's position when the second return value is called.
local function subtree(c, tree, key)
  local from = c.at
  if left(c) == 0 then
    return nil, nil
  end
  local item = tree:add(F[key], c.tvb:range(from, left(c)))
  return item, function()
    item:set_len(math.max(c.at - from, 0))
  end
end

local function bits_set(range)
  local count = 0
  for at = 0, range:len() - 1 do
    local byte = uint(range:range(at, 1))
    while byte > 0 do
      count = count + byte % 2
      byte = math.floor(byte / 2)
    end
  end
  return count
end

-- The number of non-zero coefficients in a packed vector of `count` coefficients.
local function nonzero(range, bits, count)
  if bits == 1 then
    return bits_set(range)
  end
  local found = 0
  for index = 0, count - 1 do
    local value
    if bits == 8 then
      value = uint(range:range(index, 1))
    else
      local byte = uint(range:range(math.floor(index / 2), 1))
      value = index % 2 == 0 and byte % 16 or math.floor(byte / 16)
    end
    if value ~= 0 then
      found = found + 1
    end
  end
  return found
end

local function generated(tree, key, value)
  local item = tree:add(F[key], value)
  item:set_generated()
  return item
end

local function say(state, words)
  state.info[#state.info + 1] = words
end

local function malformed(state, what)
  state.tree:add_proto_expert_info(X.malformed, "Malformed frame: " .. what)
  say(state, "[malformed: " .. what .. "]")
end

-- Missing bytes are not the frame's fault if the capture has only a part of it.
local function ran_out(state, what)
  if state.truncated then
    say(state, "[captured in part]")
  else
    malformed(state, what .. " ends early")
  end
end

-- ---- packets of the hosts ----------------------------------------------------------------------

local function ip_dissector(range)
  local version = math.floor(uint(range:range(0, 1)) / 16)
  if version == 4 and range:len() >= 20 and uint(range:range(2, 2)) == range:len() then
    return Dissector.get("ip")
  elseif version == 6 and range:len() >= 40 and uint(range:range(4, 2)) + 40 == range:len() then
    return Dissector.get("ipv6")
  end
  return nil
end

-- Per session: the newest symbol, the last TCP segments by their place, and what each difference
-- expanded to, by symbol and in order.
local flows = {}

function corridor.init()
  flows = {}
end

-- The number in the `len` bytes after the first `at`, and the reverse.
local function number_at(text, at, len)
  local number = 0
  for byte = at + 1, at + len do
    number = number * 256 + text:byte(byte)
  end
  return number
end

local function bytes_of(number, len)
  local text = ""
  for _ = 1, len do
    text = string.char(number % 256) .. text
    number = math.floor(number / 256)
  end
  return text
end

-- Exclusive or of two bytes.
local function xor(a, b)
  local sum, bit = 0, 1
  while bit < 256 do
    if math.floor(a / bit) % 2 ~= math.floor(b / bit) % 2 then
      sum = sum + bit
    end
    bit = bit * 2
  end
  return sum
end

-- FNV-1a over addresses and ports, folded into a byte.
local function place_of(packet, ip)
  local hash = 0x811c9dc5
  local key = ip == 20 and packet:sub(13, 20) or packet:sub(9, 40)
  key = key .. packet:sub(ip + 1, ip + 4)
  for at = 1, #key do
    local low = hash % 256
    hash = hash - low + xor(low, key:byte(at))
    hash = (hash * 0x193 + (hash % 256) * 0x1000000) % 0x100000000
  end
  return xor(hash % 256, math.floor(hash / 0x10000) % 256)
end

-- A segment sent verbatim, in order: later segments may be differences to it.
local function note_segment(flow, packet)
  local ip, protocol
  if #packet >= 20 and packet:byte(1) == 0x45 and number_at(packet, 6, 2) % 0x4000 == 0 then
    ip, protocol = 20, packet:byte(10)
  elseif #packet >= 40 and math.floor(packet:byte(1) / 16) == 6 then
    ip, protocol = 40, packet:byte(7)
  end
  if protocol ~= 6 or #packet < ip + 20 then
    return
  end
  local data, flags = ip + 4 * math.floor(packet:byte(ip + 13) / 16), packet:byte(ip + 14)
  local plain = flags % 8 == 0 and math.floor(flags / 32) % 2 == 0
  if data >= ip + 20 and data <= #packet and plain then
    flow.places[place_of(packet, ip)] = { packet = packet, ip = ip, data = data }
  end
end

local function set_class(head, ip, class)
  if ip == 20 then
    return head:sub(1, 1) .. bytes_of(class, 1) .. head:sub(3)
  end
  local low = head:byte(2) % 16
  return bytes_of(0x6000 + class * 16 + low, 2) .. head:sub(3)
end

-- The packet that a difference stands for, as text.
local function make_whole(last, d, payload)
  local ip, old = last.ip, last.packet
  local head = old:sub(1, last.data)
  local function set(at, number, len)
    head = head:sub(1, at) .. bytes_of(number, len) .. head:sub(at + len + 1)
  end
  local on = (number_at(old, ip + 4, 4) + #old - last.data) % 0x100000000
  set(ip + 4, d.sequence or on, 4)
  set(ip + 8, d.ack or number_at(old, ip + 8, 4), 4)
  set(ip + 13, d.flags or old:byte(ip + 14), 1)
  set(ip + 14, d.window or number_at(old, ip + 14, 2), 2)
  set(ip + 16, d.checksum, 2)
  if last.data >= ip + 32 and number_at(old, ip + 20, 4) == 0x0101080a then
    set(ip + 24, (number_at(old, ip + 24, 4) + (d.stamp or 0)) % 0x100000000, 4)
    set(ip + 28, (number_at(old, ip + 28, 4) + (d.echo or 0)) % 0x100000000, 4)
  end
  if d.class ~= nil then
    head = set_class(head, ip, d.class)
  end
  if ip == 40 then
    set(4, #head + #payload - 40, 2)
    return head .. payload
  end
  set(2, #head + #payload, 2)
  set(4, d.ident or (number_at(old, 4, 2) + 1) % 0x10000, 2)
  set(10, 0, 2)
  local sum = 0
  for at = 0, 18, 2 do
    sum = sum + number_at(head, at, 2)
  end
  sum = sum % 0x10000 + math.floor(sum / 0x10000)
  sum = sum % 0x10000 + math.floor(sum / 0x10000)
  set(10, 0xffff - sum, 2)
  return head .. payload
end

-- A number in groups of seven bits, the lowest first.
local function add_groups(c, tree, key)
  local from, number, weight = c.at, 0, 1
  for _ = 1, 5 do
    local range = take(c, 1)
    if range == nil then
      return nil
    end
    number = number + uint(range) % 128 * weight
    weight = weight * 128
    if uint(range) < 128 then
      number = number % 0x100000000
      tree:add(F[key], c.tvb:range(from, c.at - from), number)
      return number
    end
  end
  return nil
end

-- Fields after the mask, in order; length 0 means groups of seven bits.
local DIFFERENCES = { { "sequence", 4 }, { "ack", 4 }, { "window", 2 }, { "flags", 1 },
  { "ident", 2 }, { "stamp", 0 }, { "echo", 0 }, { "class", 1 } }

local function dissect_difference_fields(c, tree)
  local d = { place = add(c, tree, "difference_place", 1) }
  local range = take(c, 1)
  if range == nil then
    return nil
  end
  local mask = tree:add(F.difference_mask, range)
  for _, what in ipairs(DIFFERENCES) do
    mask:add(F["differs_" .. what[1]], range)
  end
  d.checksum = add(c, tree, "difference_checksum", 2)
  if d.checksum == nil then
    return nil
  end
  local bits = uint(range)
  for _, what in ipairs(DIFFERENCES) do
    local key = "difference_" .. what[1]
    if bits % 2 == 1 then
      local read = what[2] > 0 and add(c, tree, key, what[2]) or nil
      if what[2] == 0 then
        read = add_groups(c, tree, key)
      end
      if read == nil then
        return nil
      end
      d[what[1]] = read
    end
    bits = math.floor(bits / 2)
  end
  return d
end

-- A difference is expanded when its symbol is first seen, and the result is kept.
local function difference_made_whole(state, d, payload)
  if state.flow ~= nil then
    local last = state.flow.places[d.place]
    local whole = last ~= nil and make_whole(last, d, payload)
    if whole then
      state.flow.places[d.place] = { packet = whole, ip = last.ip, data = last.data }
    end
    state.made[#state.made + 1] = whole
    return whole
  elseif state.made ~= nil then
    state.read = (state.read or 0) + 1
    return state.made[state.read]
  end
  return nil
end

local function dissect_difference(state, range, tree)
  local item = tree:add(F.difference, range)
  local c = cursor(range:tvb(), 0, range:len())
  local d = dissect_difference_fields(c, item)
  if d == nil then
    return ran_out(state, "difference")
  end
  local payload = ""
  if left(c) > 0 then
    local rest = take(c, left(c))
    item:add(F.difference_payload, rest)
    payload = rest:raw()
  end
  local whole = difference_made_whole(state, d, payload)
  if not whole then
    item:add_proto_expert_info(X.relative)
    return
  end
  local made = ByteArray.new(whole, true):tvb("Packet made whole")
  item:add(F.packet_whole, made:range()):set_generated()
  state.packets[#state.packets + 1] = made:range()
end

-- Called before the packets of a source symbol are read: earlier segments are known only as long as
-- new symbols follow each other without gaps.
local function open_symbol(state, id)
  local key = state.session
  local flow = flows[key] or { places = {}, symbols = {} }
  flows[key] = flow
  state.made = flow.symbols[id]
  if state.made == nil and not state.truncated then
    if flow.next ~= id then
      flow.places = {}
    end
    flow.next = (id + 1) % 0x100000000
    state.flow, state.made = flow, {}
    flow.symbols[id] = state.made
  end
end

-- Packets, each after its length, until a length is zero or the symbol ends.
local function dissect_packets(state, c, tree)
  local packets = 0
  while left(c) > 2 do
    -- The highest bits say whether the packet may overtake others, and whether it is a difference.
    local word = uint(c.tvb:range(c.at, 2))
    local len = word % 0x4000
    if len == 0 then
      break
    elseif len > left(c) - 2 then
      ran_out(state, "packet")
      break
    end
    local prefix = take(c, 2)
    tree:add(F.packet_no_order, prefix)
    tree:add(F.packet_difference, prefix)
    tree:add(F.packet_length, prefix)
    local range = take(c, len)
    if math.floor(word / 0x4000) % 2 == 1 then
      dissect_difference(state, range, tree)
    else
      tree:add(F.packet, range)
      state.packets[#state.packets + 1] = range
      if word < 0x8000 and state.flow ~= nil then
        note_segment(state.flow, range:raw())
      end
    end
    packets = packets + 1
  end
  if left(c) > 0 then
    add(c, tree, "padding", left(c))
  end
  return packets .. (packets == 1 and " packet" or " packets")
end

-- Passes the hosts' packets to the IP dissectors, if they are IP packets; columns and addresses of
-- the line stay those of the frame.
local function hand_on(state, pinfo, root)
  local from, to = pinfo.src, pinfo.dst
  for _, range in ipairs(state.packets) do
    local ip = ip_dissector(range)
    if ip ~= nil then
      -- An error in the packet's dissector must not affect the frame around it.
      pcall(function()
        ip:call(range:tvb(), pinfo, root)
      end)
    end
  end
  pinfo.src, pinfo.dst = from, to
end

-- ---- bodies ------------------------------------------------------------------------------------

-- The description of a block, or nil if the frame ends early or is invalid.
local function dissect_ack_block(c, tree)
  local block = add(c, tree, "ack_block", 2)
  local range = take(c, 2)
  if block == nil or range == nil then
    return nil, "ends early"
  end
  tree:add(F.ack_given_up, range)
  tree:add(F.ack_rank, range)
  local rank, given_up = uint(range) % 0x8000, uint(range) >= 0x8000
  local known = add(c, tree, "ack_known", 2)
  if known == nil then
    return nil, "ends early"
  elseif rank > known or known > BLOCK_SIZE_MAX then
    return nil, "says rank " .. rank .. " of " .. known .. " symbols"
  end
  if given_up then
    tree:add_proto_expert_info(X.given_up, "Block " .. block .. " given up by the decoder")
  end
  -- A full rank needs no bitmap: everything is decoded.
  local decoded = known
  if rank ~= known then
    local bitmap = take(c, math.floor((known + 7) / 8))
    if bitmap == nil then
      return nil, "ends early"
    end
    tree:add(F.ack_bitmap, bitmap)
    decoded = bits_set(bitmap)
  end
  generated(tree, "ack_decoded", decoded)
  return string.format("block %d rank %d/%d%s", block, rank, known, given_up and " given up" or "")
end

local function dissect_ack_blocks(c, tree, count)
  local words = {}
  if count == nil then
    return nil, "ends early"
  elseif count > ACK_BLOCKS_MAX then
    return nil, "lists " .. count .. " blocks"
  end
  for index = 1, count do
    local entry, close = subtree(c, tree, "ack_entry")
    if entry == nil then
      return nil, "ends early"
    end
    local said, fault = dissect_ack_block(c, entry)
    close()
    if said == nil then
      return nil, fault
    end
    entry:set_text(said)
    words[index] = said
  end
  return words
end

-- Returns whether it could be read to its end.
local function dissect_ack(state, c)
  local tree, close = subtree(c, state.tree, "ack")
  if tree == nil then
    ran_out(state, "acknowledgement")
    return false
  end
  local flow = add(c, tree, "ack_flow", 2)
  local first = add(c, tree, "ack_base", 2)
  add(c, tree, "ack_encoder_counter", 4)
  local range = take(c, 4)
  if range ~= nil then
    local item = tree:add(F.ack_helper_counter, range)
    if uint(range) == NO_COUNTER then
      item:append_text(" (no helper heard)")
    end
  end
  add_ratio(c, tree, "ack_e2")
  add_ratio(c, tree, "ack_e3")
  local words, fault = dissect_ack_blocks(c, tree, add(c, tree, "ack_blocks", 1))
  close()
  if words == nil and fault == "ends early" then
    ran_out(state, "acknowledgement")
    return false
  elseif words == nil then
    malformed(state, "acknowledgement " .. fault)
    return false
  end
  tree:append_text(string.format(" for flow %d, all before block %d done", flow, first))
  table.insert(words, 1, string.format("flow %d base %d", flow, first))
  say(state, table.concat(words, ", "))
  return true
end

-- A full coding vector. Returns whether the symbol follows.
local function dissect_vector(state, c, count)
  local bits = state.field_bits
  if FIELDS[bits] == nil then
    state.tree:add_proto_expert_info(X.field)
    say(state, "[field not known]")
    return false
  end
  local vector = take(c, math.floor((count * bits + 7) / 8))
  if vector == nil then
    ran_out(state, "coding vector")
    return false
  end
  local item = state.tree:add(F.coefficients, vector)
  item:append_text(" over " .. FIELDS[bits])
  generated(item, "nonzero", nonzero(vector, bits, count))
  return true
end

-- An encoder's run, whose highest bits were read before.
local function add_run(c, tree, high)
  local low = take(c, 1)
  if low ~= nil then
    tree:add(F.run, low, high * 0x100 + uint(low))
  end
  return low
end

-- The kind of the symbol; nil if it, or the symbol's position, is unknown.
local function dissect_form(state, c, form, number, run)
  if form % 3 == 0 then
    return "seq " .. number .. (form == 3 and " tagged" or "")
  elseif number == 0 then
    malformed(state, "a combination of no symbols")
  elseif form == 1 then
    if add(c, state.tree, "seed", 4) ~= nil then
      return "coded of " .. number
    end
    ran_out(state, "seed")
  elseif add_run(c, state.tree, run) == nil then
    ran_out(state, "run")
  elseif dissect_vector(state, c, number) then
    return "recoded of " .. number
  end
  return nil
end

-- What happened at the station to which it was addressed.
local function fate_words(state)
  local hearer = state.addressed
  if hearer == nil or hearer.fate == HEARD then
    return ""
  elseif hearer.rank == nil then
    return " " .. (FATES[hearer.fate] or "?")
  end
  generated(state.tree, "rank", hearer.rank)
  return string.format(" rank %d/%s%s", hearer.rank,
    state.block_size > 0 and tostring(state.block_size) or "?",
    hearer.fate == DEPENDENT and " dependent" or "")
end

local function dissect_enc(state, c)
  local tree = state.tree
  local flow = add(c, tree, "flow", 2)
  local block = add(c, tree, "block", 2)
  local range = take(c, 2)
  if flow == nil or block == nil or range == nil then
    return ran_out(state, "ENC body")
  end
  local form, number = math.floor(uint(range) / 0x4000), uint(range) % 0x4000
  local run = 0
  tree:add(F.form, range)
  if form == 2 then
    -- The highest bits of the run precede the count.
    run, number = math.floor(number / 0x800), number % 0x800
    tree:add(F.recoded_count, range)
  else
    tree:add(form % 3 == 0 and F.index or F.count, range)
  end
  local words = dissect_form(state, c, form, number, run)
  local said = string.format("block %d %s%s", block, words or "?", fate_words(state))
  table.insert(state.info, 1, said)
  tree:append_text(", flow " .. flow .. ", " .. said)
  if words == nil then
    return
  elseif left(c) == 0 then
    return ran_out(state, "symbol")
  end
  local symbol = c.tvb:range(c.at, left(c))
  local item = tree:add(F.symbol, symbol)
  generated(item, "symbol_length", symbol:len())
  if form == 3 and add(c, item, "end_tag", END_TAG_LEN) == nil then
    return ran_out(state, "tag")
  end
  if form % 3 == 0 then
    item:append_text(" (" .. dissect_packets(state, c, item) .. ")")
  else
    take(c, left(c))
  end
end

-- Number of bits set among the first `count` of a bitmap.
local function bits_set_before(range, count)
  local found = 0
  for at = 0, math.min(range:len() * 8, count) - 1 do
    local byte = uint(range:range(math.floor(at / 8), 1))
    found = found + math.floor(byte / 2 ^ (at % 8)) % 2
  end
  return math.floor(found)
end

-- Returns whether it could be read to its end.
local function dissect_link_feedback(state, c)
  local tree, close = subtree(c, state.tree, "link")
  if tree == nil then
    ran_out(state, "feedback about a link")
    return false
  end
  local first = take(c, 1)
  if first ~= nil then
    tree:add(F.link_half_duplex, first)
    tree:add(F.link_overtakes, first)
    tree:add(F.link_has_gap, first)
    tree:add(F.link_path, first)
  end
  local counter = add(c, tree, "link_counter", 4)
  local delay = take(c, 2)
  if delay ~= nil then
    tree:add(F.link_delay, delay, uint(delay) * DELAY_UNIT_NS)
  end
  add(c, tree, "link_received_at", 4)
  add(c, tree, "link_frames", 4)
  local loss = add_ratio(c, tree, "link_loss")
  local is_whole = loss ~= nil
  if is_whole and math.floor(uint(first) / 0x40) % 2 == 1 then
    local lateness = take(c, 2)
    is_whole = lateness ~= nil
    if is_whole then
      tree:add(F.link_lateness, lateness, uint(lateness) * DELAY_UNIT_NS)
    end
  end
  if is_whole and math.floor(uint(first) / 0x20) % 2 == 1 then
    add(c, tree, "link_gap", 4)
    is_whole = add(c, tree, "link_gap_number", 1) ~= nil
  end
  close()
  if not is_whole then
    ran_out(state, "feedback about a link")
    return false
  end
  local words = string.format("counter %.0f loss %.0f %%", counter, 100 * loss)
  tree:append_text(": " .. words)
  say(state, words)
  return true
end

-- Returns the description, or nil and the error.
local function dissect_window_ack_fields(c, tree)
  add(c, tree, "window_ack_flow", 1)
  local first = add(c, tree, "window_ack_next", 4)
  local span_word = take(c, 2)
  if span_word ~= nil then
    tree:add(F.window_ack_lanes, span_word)
    tree:add(F.window_ack_span, span_word)
  end
  local deficit_word = take(c, 2)
  if deficit_word ~= nil then
    tree:add(F.window_ack_lane, deficit_word)
    tree:add(F.window_ack_deficit, deficit_word)
  end
  add(c, tree, "window_ack_useless", 2)
  local word = take(c, 1)
  if word == nil then
    return nil, "ends early"
  end
  tree:add(F.window_ack_length, word)
  tree:add(F.window_ack_has_credit, word)
  local has_credit, length = uint(word) >= 0x80, uint(word) % 0x80
  local lanes_log, span = math.floor(uint(span_word) / 0x2000), uint(span_word) % 0x2000
  local lane, deficit = math.floor(uint(deficit_word) / 0x1000), uint(deficit_word) % 0x1000
  if lanes_log > LANES_LOG_MAX or lane >= 2 ^ lanes_log then
    return nil, "is about lane " .. lane .. " of 2^" .. lanes_log
  elseif deficit > span then
    return nil, "says that " .. deficit .. " of " .. span .. " symbols are lacking"
  end
  local needed = 0
  if length > 0 then
    local bitmap = take(c, length)
    if bitmap == nil then
      return nil, "ends early"
    end
    tree:add(F.window_ack_bitmap, bitmap)
    needed = bits_set_before(bitmap, span)
  end
  generated(tree, "window_ack_needed", needed)
  if has_credit and add(c, tree, "window_ack_credit", 2) == nil then
    return nil, "ends early"
  end
  local of_lane = lanes_log > 0 and string.format(" lane %d/%d", lane, math.floor(2 ^ lanes_log)) or ""
  return string.format("next %.0f%s deficit %d", first, of_lane, deficit)
end

-- Returns whether it could be read to its end.
local function dissect_window_ack(state, c)
  local tree, close = subtree(c, state.tree, "window_ack")
  if tree == nil then
    ran_out(state, "acknowledgement")
    return false
  end
  local words, fault = dissect_window_ack_fields(c, tree)
  close()
  if words == nil and fault == "ends early" then
    ran_out(state, "acknowledgement")
    return false
  elseif words == nil then
    malformed(state, "acknowledgement " .. fault)
    return false
  end
  tree:append_text(": " .. words)
  say(state, words)
  return true
end

-- The kind of the symbol; nil if unknown.
local function dissect_window_form(state, c, form, lanes_log, number)
  local tree = state.tree
  if form > 1 and (lanes_log == 0 or lanes_log > LANES_LOG_MAX) then
    malformed(state, "a symbol of one of 2^" .. lanes_log .. " lanes")
    return nil
  elseif form % 2 == 1 and number == 0 then
    malformed(state, "a combination of no symbols")
    return nil
  end
  local word = take(c, 4)
  local lanes = math.floor(2 ^ lanes_log)
  local by = lanes > 1 and " by " .. lanes or ""
  if word == nil then
    ran_out(state, "window symbol")
    return nil
  end
  local id = uint(word)
  if form % 2 == 0 then
    tree:add(F.window_id, word)
    return string.format("source %.0f (+%d%s)", id, number, by), id
  end
  tree:add(F.window_first, word)
  tree:add(F.window_serial, word)
  -- Ids are given by their lowest 20 bits.
  local first = math.floor(id / 2 ^ 12)
  local last = (first + (number - 1) * lanes) % 2 ^ 20
  generated(tree, "window_last", math.floor(last))
  return string.format("coded %.0f..%.0f%s", first, last, by)
end

local function dissect_window(state, c)
  local tree = state.tree
  local flow = take(c, 1)
  if flow ~= nil then
    tree:add(F.window_paired, flow)
    tree:add(F.window_flow, flow)
  end
  local range = take(c, 2)
  if range == nil then
    return ran_out(state, "window symbol")
  end
  local form, number = math.floor(uint(range) / 0x4000), uint(range) % 0x4000
  tree:add(F.window_form, range)
  local lanes_log = 0
  if form > 1 then
    lanes_log, number = math.floor(number / 0x800), number % 0x800
    tree:add(F.window_lanes, range)
    tree:add(form == 2 and F.window_lane_distance or F.window_lane_count, range)
  else
    tree:add(form == 0 and F.window_distance or F.window_count, range)
  end
  local words, id = dissect_window_form(state, c, form, lanes_log, number)
  if words == nil then
    return
  end
  local said = words .. fate_words(state)
  table.insert(state.info, 1, said)
  tree:append_text(", " .. said)
  if left(c) == 0 then
    return ran_out(state, "symbol")
  end
  local symbol = c.tvb:range(c.at, left(c))
  local item = tree:add(F.symbol, symbol)
  generated(item, "symbol_length", symbol:len())
  if form % 2 == 0 then
    open_symbol(state, id)
    item:append_text(" (" .. dissect_packets(state, c, item) .. ")")
  else
    take(c, left(c))
  end
end

local function dissect_report(state, c)
  local count = add(c, state.tree, "report_count", 1)
  if count == nil then
    return ran_out(state, "report")
  elseif count > PEERS_MAX then
    return malformed(state, count .. " encoders in a report")
  end
  for _ = 1, count do
    local flow = add(c, state.tree, "report_flow", 2)
    local e1 = add_ratio(c, state.tree, "report_e1")
    if flow == nil or e1 == nil or add(c, state.tree, "report_frames", 4) == nil then
      return ran_out(state, "report")
    end
    say(state, string.format("flow %d e1 %.3f", flow, e1))
  end
end

local function dissect_probe(state, c)
  local round, before = add(c, state.tree, "probe_round", 2), add(c, state.tree, "probe_before", 1)
  if round == nil or before == nil then
    return ran_out(state, "probe")
  end
  say(state, "round " .. round .. " after " .. before)
end

local function dissect_echoes(state, c)
  local count = add(c, state.tree, "probe_count", 1)
  if count == nil then
    return ran_out(state, "echoes")
  elseif count > ECHOES_MAX then
    return malformed(state, count .. " echoes")
  end
  for _ = 1, count do
    local round, length = add(c, state.tree, "probe_round", 2), add(c, state.tree, "probe_length", 2)
    if round == nil or length == nil then
      return ran_out(state, "echoes")
    end
    say(state, "round " .. round .. " " .. length .. " bytes arrived")
  end
end

local function dissect_token(state, c)
  local to = add(c, state.tree, "probe_to", 2)
  if to == nil or add(c, state.tree, "probe_token", 8) == nil then
    return ran_out(state, "challenge")
  end
  say(state, "to station " .. to)
end

local function dissect_goodbye_heard(state, c)
  local to = add(c, state.tree, "probe_to", 2)
  if to == nil then
    return ran_out(state, "goodbye")
  end
  say(state, "of station " .. to)
end

local function dissect_plain(state, c)
  say(state, dissect_packets(state, c, state.tree) .. fate_words(state))
end

local function dissect_hello_to(state, c)
  local tree, close = subtree(c, state.tree, "to")
  if tree == nil then
    return nil
  end
  local number = add(c, tree, "to_station", 2)
  add(c, tree, "to_session", 16)
  add(c, tree, "to_challenge", 16)
  local answer = add(c, tree, "to_answer", 16)
  local flags = take(c, 1)
  local lane_size = take(c, 2)
  close()
  if number == nil or answer == nil or flags == nil or lane_size == nil then
    return nil
  end
  tree:add(F.to_accepted, flags)
  tree:add(F.to_asks, flags)
  tree:add(F.to_instead, flags)
  tree:add(F.to_lanes, flags)
  tree:add(F.to_lane_size, lane_size)
  local accepted = uint(flags) % 2 == 1
  local words = (accepted and "accepts" or "challenges") .. " station " .. number
  tree:append_text(": " .. words)
  return words
end

local function dissect_hello(state, c)
  local tree = state.tree
  add(c, tree, "instance", 8)
  local bits = add(c, tree, "hello_field", 1)
  local size = add(c, tree, "hello_block_size", 2)
  add(c, tree, "hello_symbol_size", 2)
  local mode = add(c, tree, "hello_mode", 1)
  add(c, tree, "hello_base", 4)
  local count = add(c, tree, "hello_count", 1)
  if count == nil then
    return ran_out(state, "greeting")
  elseif FIELDS[bits] == nil or size == 0 or size > BLOCK_SIZE_MAX then
    return malformed(state, "no such field or block size")
  elseif MODES[mode] == nil then
    return malformed(state, "no such mode")
  elseif count > PEERS_MAX then
    return malformed(state, count .. " sessions in a greeting")
  end
  say(state, FIELDS[bits] .. (mode == 1 and " window" or " block") .. " size " .. size)
  for _ = 1, count do
    local said = dissect_hello_to(state, c)
    if said == nil then
      return ran_out(state, "greeting")
    end
    say(state, said)
  end
  -- Older stations do not send these fields.
  if left(c) >= 4 then
    add(c, tree, "told_feedback", 2)
    add(c, tree, "told_hello", 2)
  end
end

local function dissect_relayed(state, c)
  local to = add(c, state.tree, "relayed_to", 2)
  local length = add(c, state.tree, "relayed_length", 2)
  if to == nil or length == nil or length > left(c) then
    return ran_out(state, "relay's frame")
  end
  local stop = c.at + length
  local kind = length > 0 and add(c, state.tree, "relayed_kind", 1) or nil
  local reports = 0
  if kind == RELAYED_REPORTS then
    reports = length > 1 and add(c, state.tree, "relayed_reports", 1) or 0
    if reports == 0 or stop - c.at < 8 * reports then
      return malformed(state, "no frame of a relay")
    end
    for _ = 1, reports do
      add(c, state.tree, "relayed_report_node", 2)
      add(c, state.tree, "relayed_report_newest", 2)
      add(c, state.tree, "relayed_report_came", 4)
    end
    if c.at == stop then
      return say(state, "reports for all")
    end
    kind = add(c, state.tree, "relayed_kind", 1)
    length = stop - c.at + 1
  end
  local counter = length > 4 and add(c, state.tree, "relayed_counter", 4) or nil
  if counter == nil or RELAYED_KINDS[kind] == nil then
    return malformed(state, "no frame of a relay")
  end
  if kind == RELAYED_REPAIR then
    if stop - c.at < 6 then
      return malformed(state, "no frame of a relay")
    end
    add(c, state.tree, "relayed_newest", 2)
    add(c, state.tree, "relayed_covered", 4)
  end
  if c.at < stop then
    add(c, state.tree, "relayed_rest", stop - c.at)
  end
  say(state, RELAYED_KINDS[kind] .. " " .. counter .. " for "
    .. (to == 0 and "all" or "station " .. to))
end

-- Parts are not reassembled, since they are in several frames.
local function dissect_part(state, c)
  local tree = state.tree
  local whole = add(c, tree, "part_whole", 2)
  local length = add(c, tree, "part_length", 2)
  local at = add(c, tree, "part_at", 2)
  if at == nil then
    return ran_out(state, "part")
  elseif at >= length then
    return malformed(state, "a part at " .. at .. " of " .. length .. " bytes")
  end
  local len = math.min(length - at, left(c))
  if add(c, tree, "part_bytes", len) == nil then
    return ran_out(state, "part")
  end
  say(state, string.format("of %d: %d to %d of %d bytes", whole, at, at + len, length))
end

-- By kind.
local BODIES = { dissect_enc, dissect_ack, dissect_report, dissect_hello, dissect_plain,
  dissect_window, dissect_window_ack, dissect_link_feedback, dissect_probe, dissect_echoes,
  dissect_token, dissect_token, function() end, dissect_goodbye_heard, dissect_relayed,
  dissect_part }

-- Reads the length of a chunk that is followed by another: returns where its body ends.
local function add_length(c, tree)
  local from = c.at
  local high = take(c, 1)
  local low = high ~= nil and uint(high) >= 0x80 and take(c, 1) or nil
  if high == nil or (uint(high) >= 0x80 and low == nil) then
    return nil
  end
  local length = low == nil and uint(high) or (uint(high) - 0x80) * 0x100 + uint(low)
  if low ~= nil and length < 0x80 then
    return nil
  end
  tree:add(F.chunk_length, c.tvb:range(from, c.at - from), length)
  return c.at + length
end

-- Reads a chunk; returns its kind, and whether another one follows that can be read.
local function dissect_chunk(state, c)
  local frame, from, first = state.tree, c.at, take(c, 1)
  if first == nil then
    ran_out(state, "list of chunks")
    return nil, false
  end
  local followed, kind = uint(first) >= 0x80, uint(first) % 0x80
  local item = frame:add(F.chunk, c.tvb:range(from, c.stop - from))
  item:add(F.followed, first)
  item:add(F.type, first)
  local stop = c.stop
  if followed then
    stop = add_length(c, item)
    if stop == nil or stop > c.stop then
      ran_out(state, "chunk")
      return KINDS[kind], false
    end
    item:set_len(stop - from)
  end
  if BODIES[kind] == nil then
    malformed(state, "a chunk of no known kind")
    return nil, false
  end
  state.tree = item
  item:set_text(KINDS[kind])
  local body = cursor(c.tvb, c.at, stop)
  BODIES[kind](state, body)
  if body.at < stop and body.stop == stop and followed then
    malformed(state, "bytes behind a body")
  elseif body.at < stop and body.stop == stop then
    add(body, item, "padding", stop - body.at)
  end
  state.tree = frame
  c.at = stop
  return KINDS[kind], followed
end

-- The last chunk names the frame; piggybacked ones are listed after it.
local function dissect_chunks(state, c)
  local words, name = state.info, nil
  local riding = {}
  for count = 1, CHUNKS_MAX do
    state.info = {}
    local kind, followed = dissect_chunk(state, c)
    if not followed then
      name = kind
      break
    end
    riding[#riding + 1] = kind .. " " .. table.concat(state.info, ", ")
    if count == CHUNKS_MAX then
      state.info = {}
      malformed(state, "more than " .. CHUNKS_MAX .. " chunks")
    end
  end
  -- Of a greeting the station comes first, of a symbol its kind.
  local is_symbol = name == "ENC" or name == "WIN" or name == "PART"
  local all = {}
  for _, list in ipairs(is_symbol and { state.info, riding, words } or { words, state.info, riding }) do
    for _, said in ipairs(list) do
      all[#all + 1] = said
    end
  end
  state.info, state.name = all, name
  state.tree:append_text(" " .. (name or "?"))
end

-- ---- the frame ---------------------------------------------------------------------------------

-- Whether the bytes at `at` can be a frame.
local function is_frame(tvb, at, reported)
  if reported - at < HEADER_LEN + TAG_LEN or tvb:len() <= at then
    return false
  end
  local first = uint(tvb:range(at, 1))
  return math.floor(first / 16) == VERSION and (first % 16 == CHUNKED or first % 16 == GREETING)
end

local function is_key_exchange(tvb, at, reported)
  if tvb:len() < at + 4 or uint(tvb:range(at, 1)) ~= VERSION * 16 + KEY_EXCHANGE then
    return false
  end
  local step = uint(tvb:range(at + 3, 1))
  if step == WITH_COOKIE then
    return reported - at > WITH_COOKIE_LEN
  end
  if step == 1 then
    return reported - at >= STEP_LENS[step]
  end
  return STEP_LENS[step] == reported - at
end

local function dissect_key_exchange(state, tvb, at)
  local c = cursor(tvb, at, tvb:len())
  local tree = state.tree
  state.name = "KEYS"
  local first = take(c, 1)
  tree:add(F.version, first)
  tree:add(F.frame_form, first)
  local sender = add(c, tree, "sender", 2)
  local step = add(c, tree, "step", 1)
  if step == COOKIE or step == WITH_COOKIE then
    local fields = step == COOKIE and { "cookie_answers", "cookie" } or { "cookie_mac" }
    local words = "station " .. sender .. (step == COOKIE and " cookie" or " message with a cookie")
    tree:append_text(" " .. words)
    say(state, words)
    for _, name in ipairs(fields) do
      if add(c, tree, name, 16) == nil then
        return ran_out(state, "cookie")
      end
    end
    if step == WITH_COOKIE and left(c) > 0 then
      tree:add(F.cookie_message, take(c, left(c)))
    end
    return
  end
  local exchange = add(c, tree, "exchange", 4)
  if exchange == nil then
    return ran_out(state, "key exchange")
  end
  local words = "station " .. sender .. " key exchange, " .. STEPS[step]
  tree:append_text(" " .. words)
  say(state, words)
  local mac_at = at + STEP_LENS[step] - MAC_LEN
  c.stop = math.min(tvb:len(), mac_at)
  if left(c) > 0 then
    tree:add(F.noise, take(c, left(c)))
  end
  if tvb:len() > mac_at then
    tree:add(F.mac, tvb:range(mac_at, math.min(MAC_LEN, tvb:len() - mac_at)))
  end
end

local function dissect_clear_hello(state, c)
  local sender = add(c, state.tree, "sender", 2)
  local id = add(c, state.tree, "session_id", 16)
  if sender == nil or id == nil then
    return ran_out(state, "greeting")
  end
  say(state, "station " .. sender)
end

local function dissect_sealed(state, c, counter)
  if left(c) > 0 then
    local item = state.tree:add(F.sealed, take(c, left(c)))
    item:add_proto_expert_info(X.sealed)
  end
  say(state, "counter " .. counter .. ", sealed")
  state.name = state.is_greeting and "HELLO" or nil
end

local function dissect_frame(state, tvb, at)
  local c = cursor(tvb, at, tvb:len())
  local tree = state.tree
  local first = take(c, 1)
  tree:add(F.version, first)
  tree:add(F.frame_form, first)
  state.is_greeting = uint(first) % 16 == GREETING
  state.session = add(c, tree, "session", 2)
  local counter = add(c, tree, "counter", 4)
  if counter == nil then
    return ran_out(state, "header")
  end
  -- The tag ends the frame; a partial capture may lack it, or a part of it.
  local tag_at = state.reported - TAG_LEN
  c.stop = math.min(tvb:len(), tag_at)
  if state.is_greeting then
    dissect_clear_hello(state, c)
  end
  if state.unsealed then
    dissect_chunks(state, c)
  else
    dissect_sealed(state, c, counter)
  end
  if tvb:len() > tag_at then
    tree:add(F.tag, tvb:range(tag_at, math.min(TAG_LEN, tvb:len() - tag_at)))
  end
end

-- ---- the capture header ------------------------------------------------------------------------

local function hearer_expert(item, number, fate, is_addressed)
  if fate == LOST and is_addressed then
    item:add_proto_expert_info(X.lost)
  elseif fate == DEPENDENT then
    item:add_proto_expert_info(X.dependent, "Dependent: raised no rank at station " .. number)
  elseif fate == LATE then
    item:add_proto_expert_info(X.late)
  elseif fate == REFUSED then
    item:add_proto_expert_info(X.refused)
  elseif fate == REJECTED then
    item:add_proto_expert_info(X.rejected)
  end
end

local function dissect_hearer(state, c, tree, to)
  local item = tree:add(F.hearer, c.tvb:range(c.at, HEARER_LEN))
  local number = add(c, item, "hearer_station", 2)
  local fate = add(c, item, "hearer_fate", 1)
  local range = take(c, 2)
  local words = "station " .. number .. ": " .. (FATES[fate] or "?")
  local rank
  if uint(range) ~= NO_RANK then
    rank = uint(range)
    item:add(F.hearer_rank, range)
    words = words .. ", rank " .. rank
  end
  item:set_text(words)
  hearer_expert(item, number, fate, number == to)
  if number == to then
    state.addressed = { fate = fate, rank = rank }
  end
  return fate ~= LOST
end

local function dissect_reach(state, c, tree, to)
  local reach, heard = add(c, tree, "air_reach", 2), 0
  for _ = 1, reach do
    if dissect_hearer(state, c, tree, to) then
      heard = heard + 1
    end
  end
  generated(tree, "air_heard", heard)
  if heard == 0 and reach > 0 then
    tree:add_proto_expert_info(X.unheard)
  end
  return reach, heard
end

-- Returns where the frame begins; nil if this is not a complete capture header.
local function dissect_capture(state, tvb)
  if tvb:len() < CAPTURE_FIXED_LEN then
    return nil
  end
  local length, reach = uint(tvb:range(5, 2)), uint(tvb:range(25, 2))
  if uint(tvb:range(4, 1)) ~= CAPTURE_VERSION
    or length ~= CAPTURE_FIXED_LEN + HEARER_LEN * reach or length > tvb:len() then
    return nil
  end
  local tree = state.tree:add(F.air, tvb:range(0, length))
  local c = cursor(tvb, 4, length)
  add(c, tree, "air_version", 1)
  add(c, tree, "air_length", 2)
  local flags = take(c, 1)
  tree:add(F.air_unsealed, flags)
  tree:add(F.air_to_all, flags)
  state.unsealed = uint(flags) % 2 == 1
  local from = add(c, tree, "air_from", 2)
  local to = add(c, tree, "air_to", 2)
  if math.floor(uint(flags) / 2) % 2 == 1 then
    to = nil
  end
  local again = add(c, tree, "air_retransmissions", 2)
  state.field_bits = add(c, tree, "air_field", 1)
  state.block_size = add(c, tree, "air_block_size", 2)
  local airtime = add(c, tree, "air_airtime", 8)
  local count, heard = dissect_reach(state, c, tree, to)
  if again > 0 then
    tree:add_proto_expert_info(X.again, "Retransmission " .. again .. " by the link layer")
    say(state, "[retransmission " .. again .. "]")
  end
  tree:append_text(string.format(": %d to %s, %.3f ms, heard by %d of %d", from,
    to == nil and "all" or tostring(to), airtime:uint64():tonumber() / 1e6, heard, count))
  return length
end

-- ---- entry points ------------------------------------------------------------------------------

function corridor.dissector(tvb, pinfo, root)
  local reported = tvb:reported_len()
  local is_capture = tvb:len() >= 4 and uint(tvb:range(0, 4)) == CAPTURE_MAGIC
  if not is_capture and not is_frame(tvb, 0, reported) and not is_key_exchange(tvb, 0, reported) then
    return 0
  end
  local state = {
    tree = root:add(corridor, tvb:range(0)),
    reported = reported,
    truncated = tvb:len() < reported,
    unsealed = false,
    field_bits = 0,
    block_size = 0,
    -- Texts for the Info column, and packets for other dissectors.
    info = {},
    packets = {},
  }
  if state.truncated then
    state.tree:add_proto_expert_info(X.truncated)
  end
  local at = 0
  if is_capture then
    at = dissect_capture(state, tvb)
    if at == nil then
      ran_out(state, "capture header")
    elseif not is_frame(tvb, at, reported) and not is_key_exchange(tvb, at, reported) then
      malformed(state, "not a frame of wire version " .. VERSION)
      at = nil
    end
  end
  if at ~= nil and is_key_exchange(tvb, at, reported) then
    dissect_key_exchange(state, tvb, at)
  elseif at ~= nil then
    dissect_frame(state, tvb, at)
  end
  hand_on(state, pinfo, root)
  pinfo.cols.protocol = "CORRIDOR"
  local words = table.concat(state.info, ", ")
  local space = state.name ~= nil and words ~= "" and " " or ""
  pinfo.cols.info:clear_fence()
  pinfo.cols.info = (state.name or "") .. space .. words
  return tvb:len()
end

local ethertypes = DissectorTable.get("ethertype")
ethertypes:add(ETHERTYPE_SEALED, corridor)
ethertypes:add(ETHERTYPE_CAPTURE, corridor)

local udp_ports = DissectorTable.get("udp.port")
local udp_port = 0

local function register_port()
  if udp_port ~= 0 then
    udp_ports:remove(udp_port, corridor)
  end
  udp_port = corridor.prefs.udp_port
  if udp_port ~= 0 then
    udp_ports:add(udp_port, corridor)
  end
end

corridor.prefs_changed = register_port
register_port()
udp_ports:add_for_decode_as(corridor)
