//! The parsers of the wire format: whatever they accept is written as it was read.

use corridor_proto::wire::{
    Ack, Chunk, Chunks, Enc, Header, Hello, LinkFeedback, Part, Relayed, Report, TAG_LEN, Trailer,
    WINDOW_CREDIT_LEN, WINDOW_FEEDBACK_LEN, WindowFeedback, WindowForm, WindowSymbol, Word,
    chunk_len,
};
use corridor_proto::{Field, StationId};

/// Interprets `data` as a kind of body, and that body.
///
/// # Panics
/// If a parser panics, or if what it read is not what is read again after it was written.
pub fn wire(data: &[u8]) {
    let Some((&kind, body)) = data.split_first() else { return };
    match kind % 8 {
        0 => header(body),
        1 => ack(body),
        2 => report(body),
        3 => hello(body),
        4 => enc(body),
        5 => window_symbol(body),
        6 => feedback(body),
        _ => relayed(body),
    }
}

/// Chunks written again have the same length as before.
fn chunks(bytes: &[u8]) {
    let (mut written, mut len) = (Vec::new(), 0);
    let mut chunks = Chunks::new(bytes).map_while(|chunk| chunk).peekable();
    while let Some(chunk @ Chunk { kind, body, .. }) = chunks.next() {
        len += chunk_len(body.len());
        if chunks.peek().is_some() {
            kind.write(body, &mut written);
        } else {
            kind.begin_last(&mut written);
            written.extend_from_slice(body);
        }
        if let Some(part) = Part::parse(body) {
            let mut again = Vec::new();
            part.write(&mut again);
            assert!(
                body.starts_with(&again)
                    && usize::from(part.at) + part.bytes.len() <= part.len.get().into()
            );
        }
        let Some(word) = Word::parse(chunk) else { continue };
        let mut again = Vec::new();
        word.write_last(&mut again);
        assert!(again[0] == kind.code() && body.starts_with(&again[1..]));
    }
    assert!(written.len() <= len);
    // The last readable chunk is now the last one.
    let read = |bytes| {
        let read = Chunks::new(bytes).map_while(|chunk| chunk);
        read.map(|Chunk { kind, body, .. }| (kind, body.to_vec())).collect::<Vec<_>>()
    };
    assert_eq!(read(&written), read(bytes));
}

fn header(bytes: &[u8]) {
    chunks(bytes);
    let Some(header) = Header::parse(bytes) else { return };
    let mut written = Vec::new();
    header.write(&mut written);
    assert!(bytes.starts_with(&written) && bytes.len() >= written.len() + TAG_LEN);
}

fn ack(bytes: &[u8]) {
    let Some((ack, rest)) = Ack::parse(bytes) else { return };
    assert!(rest.len() < bytes.len());
    let mut written = Vec::new();
    ack.write(&mut written);
    assert_eq!(Ack::parse(&written), Some((ack, &[][..])));
}

fn report(bytes: &[u8]) {
    let Some((report, _)) = Report::parse(bytes) else { return };
    let mut written = Vec::new();
    report.write(&mut written);
    assert!(bytes.starts_with(&written));
}

fn hello(bytes: &[u8]) {
    let Some(hello) = Hello::parse(bytes) else { return };
    let mut written = Vec::new();
    hello.write(&mut written);
    assert_eq!(Hello::parse(&written), Some(hello));
}

fn enc(bytes: &[u8]) {
    // The field is the flow's; here, each has its own.
    let fields = [Field::Gf2, Field::Gf16, Field::Gf256];
    let field = |flow: StationId| fields.get(usize::from(flow.0 % 4)).copied();
    let Some(enc) = Enc::parse(bytes, field) else { return };
    let mut written = Vec::new();
    Enc::write_head(enc.flow, enc.block, enc.form, &mut written);
    written.extend_from_slice(enc.symbol);
    assert_eq!(written, bytes);
}

fn relayed(bytes: &[u8]) {
    let Some(relayed) = Relayed::parse(bytes) else { return };
    let mut written = Vec::new();
    relayed.write(&mut written);
    assert!(bytes.starts_with(&written) && bytes[written.len()..].iter().all(|&byte| byte == 0));
    let Some((packet, trailer)) = Trailer::split(relayed.frame) else { return };
    let mut written = packet.to_vec();
    trailer.write(&mut written);
    assert_eq!(written, relayed.frame);
}

fn window_symbol(bytes: &[u8]) {
    let Some(symbol) = WindowSymbol::parse(bytes) else { return };
    assert!(!symbol.symbol.is_empty());
    if let WindowForm::Source { distance, .. } = symbol.form {
        assert!(distance < 1 << 14);
    }
    let mut written = Vec::new();
    WindowSymbol::write_head(symbol.flow, symbol.form, &mut written);
    written.extend_from_slice(symbol.symbol);
    if symbol.is_paired {
        WindowSymbol::pair(&mut written);
    }
    assert_eq!(written, bytes);
}

fn feedback(bytes: &[u8]) {
    let Some((of_link, rest)) = LinkFeedback::parse(bytes) else { return };
    let mut written = Vec::new();
    of_link.write(&mut written);
    assert_eq!(written[..], bytes[..LinkFeedback::len(of_link.lateness, of_link.pair.is_some())]);
    let Some((of_window, behind)) = WindowFeedback::parse(rest) else { return };
    written.clear();
    of_window.write(&mut written);
    let credit_len = of_window.credit.map_or(0, |_| WINDOW_CREDIT_LEN);
    assert_eq!(written.len(), WINDOW_FEEDBACK_LEN + of_window.needed.len() + credit_len);
    written.extend_from_slice(behind);
    assert_eq!(written, rest);
    let told = usize::from(of_window.span).min(8 * of_window.needed.len());
    for ahead in [0, 1, told / 2, told.saturating_sub(1), told, told + 1, usize::MAX] {
        assert_eq!(of_window.is_needed(ahead).is_some(), ahead < told);
    }
}
