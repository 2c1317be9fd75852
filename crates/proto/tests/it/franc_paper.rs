//! FRANC's Section II-D, sentence by sentence (Hundebøll et al., European Wireless 2014). Where our
//! behaviour differs deliberately, the test says so.

#[allow(dead_code)]
use crate::script::Script;

/// A group that has met, and a script to go on with.
fn group(options: &str) -> Script {
    let mut script = Script::new();
    script.run(&format!("group {options}"));
    script
}

/// Number of lines of a trace that contain all these words in this order.
fn count(trace: &str, words: &str) -> usize {
    let has = |line: &&str| {
        let mut rest = line.split_whitespace();
        words.split_whitespace().all(|word| rest.any(|other| other == word))
    };
    trace.lines().filter(has).count()
}

// ---- the encoder ------------------------------------------------------------------------------

/// "When in the former state, the encoder increases its budget for every packet added to the block,
/// and spends it again by sending encoded packets": at e3 = 1/2 each symbol earns two
/// transmissions.
#[test]
fn the_encoder_earns_with_every_packet_and_spends_it() {
    for symbols in 1..=4 {
        let mut script = group("block=10 e3=0.5 on-the-fly timeout=1000");
        let trace = script.run(&format!("lose D ACK 100\nsend S {symbols}\nrun 50"));
        assert_eq!(count(&trace, "S ENC 0 coded"), 2 * symbols, "{trace}");
    }
}

/// "... after which the state is changed to WAIT. In this, the encoder waits for the configured
/// timeout": nothing is sent before it ends.
#[test]
fn the_encoder_waits_for_the_configured_timeout() {
    let mut script = group("block=10 on-the-fly timeout=30");
    let trace = script.run("lose S ENC 1\nsend S 1\nrun 30");
    assert_eq!(count(&trace, "S ENC"), 1, "{trace}");
    let trace = script.run("run 1");
    assert_eq!(count(&trace, "S ENC"), 1, "{trace}");
}

/// "... and if no ACK packet is received, the budget is incremented and spent, similar to when a
/// symbol is added in the ENC state", again and again.
#[test]
fn without_an_acknowledgement_the_budget_grows_and_is_spent() {
    let mut script = group("block=10 on-the-fly timeout=20");
    let trace = script.run("lose S ENC 3\nsend S 1\nrun 75\nstats S encoder_timeouts");
    assert_eq!(count(&trace, "S ENC (lost)"), 3, "{trace}");
    assert_eq!(count(&trace, "D delivers p1"), 1, "{trace}");
    assert!(trace.contains("encoder_timeouts: 3"), "{trace}");
}

/// "When receiving an ACK packet, the encoder compares the included rank with number of added
/// symbols. If the decoder rank is less than the number of added symbols, nothing is changed." This
/// holds while symbols are in flight. Our encoder differs once none is: it sends what is missing at
/// once, because this is the news that it waited for.
#[test]
fn a_lower_rank_changes_nothing_while_symbols_are_under_way() {
    let mut script = group("block=10 timeout=100");
    let trace = script.run("hold S ENC 2\nsend S 1\nrun 1");
    assert_eq!(count(&trace, "S ENC (held)"), 1, "{trace}");
    // The second symbol is in flight, and the decoder reports neither: the encoder is quiet.
    let trace = script.run("send S 1\nrun 50");
    assert_eq!((count(&trace, "S ENC"), count(&trace, "D ACK")), (1, 0), "{trace}");

    // A later symbol's acknowledgment has overtaken a symbol, which counts as lost.
    let mut script = group("block=10 timeout=100");
    let trace = script.run("lose S ENC 1\nsend S 2\nrun 10");
    assert_eq!(count(&trace, "D ACK 0: rank 1 of 2"), 1, "{trace}");
    assert_eq!(count(&trace, "S ENC 0 coded"), 1, "{trace}");
}

/// "If the rank is equal, and the number of added symbols is less than the block size, the state
/// changes to IDLE."
#[test]
fn an_equal_rank_makes_the_encoder_idle() {
    let mut script = group("block=10 timeout=20");
    script.run("send S 3\nrun 10");
    let trace = script.run("run 1000\nstats S encoder_timeouts blocks_acknowledged");
    assert_eq!(count(&trace, "S ENC"), 0, "{trace}");
    assert!(trace.contains("encoder_timeouts: 0"), "{trace}");
    assert!(trace.contains("blocks_acknowledged: 0"), "{trace}");
}

/// "When the decoder rank equals the block size, the encoder increments the block ID by one, and
/// the state changes to IDLE."
#[test]
fn a_full_rank_ends_the_block() {
    let mut script = group("block=3 timeout=20");
    let trace = script.run("send S 3\nrun 10");
    assert_eq!(count(&trace, "S ENC 0"), 3, "{trace}");
    let trace = script.run("run 1000\nstats S blocks_acknowledged");
    assert_eq!(count(&trace, "S ENC"), 0, "{trace}");
    assert!(trace.contains("blocks_acknowledged: 1"), "{trace}");
    let trace = script.run("send S 1\nrun 5");
    assert_eq!(count(&trace, "S ENC 1 source 0"), 1, "{trace}");
}

/// "When being in IDLE, and new symbols are added to the encoder, the state changes to ENC."
#[test]
fn new_symbols_wake_an_idle_encoder() {
    let mut script = group("block=10 timeout=20");
    script.run("send S 1\nrun 500");
    let trace = script.run("send S 1\nrun 1");
    assert_eq!(count(&trace, "S ENC 0 source 1"), 1, "{trace}");
}

// ---- the decoder ------------------------------------------------------------------------------

/// "The decoder is simply adding packets as they arrive and sends ACKs whenever partially ...
/// decoded."
#[test]
fn the_decoder_acknowledges_what_is_partially_decoded() {
    let mut script = group("block=3 on-the-fly timeout=100");
    let trace = script.run("send S 1\nrun 3\nsend S 1\nrun 3");
    assert_eq!(count(&trace, "D ACK to 0, 0: rank 1 of 1"), 1, "{trace}");
    assert_eq!(count(&trace, "D ACK to 0, 0: rank 2 of 2"), 1, "{trace}");
}

/// "... or fully decoded. In case of the latter, the block count is incremented by one."
#[test]
fn the_decoder_counts_on_when_a_block_is_decoded() {
    let mut script = group("block=3 on-the-fly timeout=100");
    let trace = script.run("send S 3\nrun 10");
    assert!(count(&trace, "D ACK to 1") >= 1, "{trace}");
    assert_eq!(count(&trace, "D delivers"), 3, "{trace}");
}

// ---- the helper -------------------------------------------------------------------------------

/// g = 10, e1 = 0, e2 = 0, e3 = 1/2: the threshold is five symbols, the budget five transmissions.
const HELPED: &str = "helper block=10 timeout=50 e3=0.5 dense";

/// "When in IDLE, the helper is adding overheard symbols to its recoder, but not sending recoded
/// packets."
#[test]
fn an_idle_helper_listens_and_is_silent() {
    let mut script = group(HELPED);
    let trace = script.run("send S 10\nrun 4\nstats H symbols_innovative");
    assert_eq!((count(&trace, "S ENC"), count(&trace, "H ENC")), (4, 0), "{trace}");
    assert!(trace.contains("symbols_innovative: 4"), "{trace}");
}

/// "When the number of added symbols exceeds the threshold determined by PlayNCool, the state
/// changes to ENC, and the budget is increased and spent for every added symbol." Our helper starts
/// with the symbol that reaches the threshold.
#[test]
fn the_helper_sends_for_every_symbol_past_the_threshold() {
    let mut script = group(HELPED);
    script.run("send S 10\nlose S ENC 100 at D");
    for overheard in 1..=9 {
        let trace = script.run("run 1");
        assert_eq!(count(&trace, "S ENC"), 1, "{trace}");
        assert_eq!(count(&trace, "H ENC"), usize::from(overheard >= 5), "{overheard}: {trace}");
    }
}

/// "Whenever the maximum budget is spent, ... the state changes to IDLE."
#[test]
fn the_helper_is_idle_when_its_budget_is_spent() {
    let mut script = group(HELPED);
    // The decoder hears nothing and asks for nothing; the encoder sends its ten symbols, and
    // nothing else for fifty milliseconds.
    let trace = script.run("lose S ENC 100 at D\nlose H ENC 100\nsend S 10\nrun 45");
    assert_eq!((count(&trace, "S ENC"), count(&trace, "H ENC")), (10, 5), "{trace}");
}

/// Section II-B: "The overshoot parameter adds a fixed redundancy ratio to the encoder budgets",
/// and not to the helper's.
#[test]
fn the_overshoot_is_the_encoder_s_alone() {
    let mut script = group(&format!("{HELPED} overshoot=1.5"));
    let trace = script.run("lose S ENC 100 at D\nlose H ENC 100\nsend S 10\nrun 45");
    assert_eq!((count(&trace, "S ENC"), count(&trace, "H ENC")), (15, 5), "{trace}");
}

/// "... or a packet with a new block ID is received, the state changes to IDLE."
#[test]
fn a_new_block_silences_the_helper() {
    let mut script = group("helper block=20 timeout=50 e1=0.5 e3=0.8 dense");
    let trace = script.run("lose S ENC 8 at D\nlose D ACK 100 at H\nsend S 40\nrun 26");
    let first_of_next = trace.find("S ENC 1").expect("the next block began");
    assert!(count(&trace[..first_of_next], "H ENC 0") < 13, "it had not spent it all: {trace}");
    assert_eq!(count(&trace[first_of_next..], "H ENC 0"), 0, "{trace}");
}

/// "... sends recoded ENC packets": of whatever it holds, under the encoder's flow and block. An
/// overheard acknowledgment of the whole block ends this (Section II-C).
#[test]
fn the_helper_hears_acknowledgements() {
    let mut script = group("helper block=20 timeout=50 e1=0.5 e3=0.8 dense");
    let trace = script.run("lose S ENC 8 at D\nsend S 20\nrun 200");
    let done = trace.find("D ACK to 1").expect("the block was completed");
    assert!(count(&trace[..done], "H ENC 0 recoded") > 0, "{trace}");
    assert_eq!(count(&trace[done..], "H ENC"), 0, "{trace}");
}
