//! From the table of a link to the air's configuration of each direction, with every value checked.

use std::fs;
use std::path::Path;

use corridor_air::{
    ErasureConfig, ErasureError, GilbertElliott, LossTrace, MAX_QUEUE_BYTES, MAX_QUEUE_PACKETS,
    MAX_SPAN, PipeConfig, QueueLimit, RateConfig,
};

use crate::error::ScenarioError;
use crate::limits::{LINK_RATE_BPS_MAX, TRACE_BYTES_MAX};
use crate::network::{DirectionTable, ErasureKind, ErasureTable, LinkTable};
use crate::values::span;
use crate::varying::{JitterTable, OutageTable, PolicerTable};

/// The two directions of a link, before its nodes are known.
pub(crate) fn both_ways(
    field: &str,
    link: &LinkTable,
    directory: &Path,
) -> Result<[PipeConfig; 2], ScenarioError> {
    let foreign = [("count", link.count.is_some()), ("between", link.between.is_some())];
    if let Some((name, _)) = foreign.iter().find(|(_, given)| *given) {
        let expected = "nothing: `count` is of a chain's links, `between` of explicit links";
        return Err(ScenarioError::value(format!("{field}.{name}"), "a value", expected));
    }
    let common = DirectionTable {
        rate_bps: link.rate_bps,
        rate: link.rate.clone(),
        outage: link.outage,
        policer: link.policer,
        delay_ms: Some(link.delay_ms),
        jitter: link.jitter,
        queue_packets: link.queue_packets,
        queue_bytes: link.queue_bytes,
        queue_ms: link.queue_ms,
        erasure_ratio: link.erasure_ratio,
        erasure: link.erasure.clone(),
    };
    check_direction(field, &common)?;
    let way = |name: &str, own: &Option<DirectionTable>| -> Result<PipeConfig, ScenarioError> {
        let own_field = format!("{field}.{name}");
        let own = own.clone().unwrap_or_default();
        check_direction(&own_field, &own)?;
        pipe((field, &common), (&own_field, &own), directory)
    };
    Ok([way("forward", &link.forward)?, way("backward", &link.backward)?])
}

/// One direction: its own settings, or else those of both directions. A rate, a queue and losses
/// are each taken as a whole.
fn pipe(
    common: (&str, &DirectionTable),
    own: (&str, &DirectionTable),
    directory: &Path,
) -> Result<PipeConfig, ScenarioError> {
    let who = |is_told: fn(&DirectionTable) -> bool| if is_told(own.1) { own } else { common };
    let (field, table) = who(|table| table.rate_bps.is_some() || table.rate.is_some());
    let rate = match (table.rate_bps, &table.rate) {
        (Some(rate_bps), _) => RateConfig::from(rate_bps),
        (None, Some(rate)) => rate.config(&format!("{field}.rate"), directory)?,
        (None, None) => {
            let expected = "bits per second, or a table `rate`";
            return Err(ScenarioError::missing(format!("{field}.rate_bps"), expected));
        }
    };
    let (field, table) = who(|table| table.outage.is_some());
    let outage = |outage: OutageTable| outage.config(&format!("{field}.outage"));
    let outages = table.outage.map(outage).transpose()?;
    let (field, table) = who(|table| table.policer.is_some());
    let policer = |policer: PolicerTable| policer.config(&format!("{field}.policer"));
    let policer = table.policer.map(policer).transpose()?;
    let (field, jittery) = who(|table| table.jitter.is_some());
    let jitter = |jitter: JitterTable| jitter.config(&format!("{field}.jitter"));
    let jitter = jittery.jitter.map(jitter).transpose()?.unwrap_or_default();
    let (field, table) = who(|table| queues(table).iter().any(|(_, limit)| limit.is_some()));
    let Some((_, Some(queue))) = queues(table).into_iter().find(|(_, limit)| limit.is_some())
    else {
        let expected = "a number of packets, or `queue_bytes`, or `queue_ms`";
        return Err(ScenarioError::missing(format!("{field}.queue_packets"), expected));
    };
    let (field, loses) = who(|table| table.erasure.is_some() || table.erasure_ratio.is_some());
    Ok(PipeConfig {
        rate,
        outages,
        policer,
        queue,
        delay: span(own.1.delay_ms.or(common.1.delay_ms).unwrap_or_default() / 1e3),
        jitter,
        reorders: jittery.jitter.is_some_and(|jitter| jitter.reorders),
        erasure: erasures(field, loses, directory)?,
    })
}

/// The limits of the queue, each under the name of its key.
fn queues(table: &DirectionTable) -> [(&'static str, Option<QueueLimit>); 3] {
    [
        ("queue_packets", table.queue_packets.map(QueueLimit::Packets)),
        ("queue_bytes", table.queue_bytes.map(QueueLimit::Bytes)),
        ("queue_ms", table.queue_ms.map(|ms| QueueLimit::Time(span(ms / 1e3)))),
    ]
}

fn check_direction(field: &str, link: &DirectionTable) -> Result<(), ScenarioError> {
    let delay_ms_max = MAX_SPAN.as_secs_f64() * 1e3;
    if let Some(rate_bps) = link.rate_bps.filter(|rate| !(1..=LINK_RATE_BPS_MAX).contains(rate)) {
        let expected = format!("1 to {LINK_RATE_BPS_MAX} bit/s");
        return Err(ScenarioError::value(format!("{field}.rate_bps"), rate_bps, expected));
    }
    if let Some(delay_ms) = link.delay_ms.filter(|ms| !(0.0..=delay_ms_max).contains(ms)) {
        let expected = format!("0 to {delay_ms_max} ms");
        return Err(ScenarioError::value(format!("{field}.delay_ms"), delay_ms, expected));
    }
    let packets = link.queue_packets;
    if let Some(packets) = packets.filter(|count| !(1..=MAX_QUEUE_PACKETS).contains(count)) {
        let expected = format!("1 to {MAX_QUEUE_PACKETS} packets");
        return Err(ScenarioError::value(format!("{field}.queue_packets"), packets, expected));
    }
    let bytes = link.queue_bytes;
    if let Some(bytes) = bytes.filter(|count| !(1..=MAX_QUEUE_BYTES).contains(count)) {
        let expected = format!("1 to {MAX_QUEUE_BYTES} bytes");
        return Err(ScenarioError::value(format!("{field}.queue_bytes"), bytes, expected));
    }
    if let Some(ms) = link.queue_ms.filter(|&ms| !(ms >= 1e-3 && ms <= delay_ms_max)) {
        let expected = format!("0.001 to {delay_ms_max} ms");
        return Err(ScenarioError::value(format!("{field}.queue_ms"), ms, expected));
    }
    let limits: Vec<_> = queues(link).into_iter().filter(|(_, limit)| limit.is_some()).collect();
    if let [(first, _), (second, _), ..] = limits[..] {
        let expected = format!("nothing beside {first}");
        return Err(ScenarioError::value(format!("{field}.{second}"), "a value", expected));
    }
    if let (Some(rate_bps), Some(_)) = (link.rate_bps, &link.rate) {
        let expected = "either rate_bps or the table rate";
        return Err(ScenarioError::value(format!("{field}.rate_bps"), rate_bps, expected));
    }
    if let Some(ms) = link.jitter.map(|jitter| jitter.mean_ms).filter(|&ms| ms > delay_ms_max) {
        let expected = format!("0 to {delay_ms_max} ms");
        return Err(ScenarioError::value(format!("{field}.jitter.mean_ms"), ms, expected));
    }
    if let (Some(ratio), Some(_)) = (link.erasure_ratio, &link.erasure) {
        let expected = "either erasure_ratio or the table erasure";
        return Err(ScenarioError::value(format!("{field}.erasure_ratio"), ratio, expected));
    }
    check_ratio(&format!("{field}.erasure_ratio"), link.erasure_ratio)
}

fn check_ratio(field: &str, ratio: Option<f64>) -> Result<(), ScenarioError> {
    match ratio {
        Some(ratio) if !(0.0..=1.0).contains(&ratio) => {
            Err(ScenarioError::value(field, ratio, "an erasure ratio from 0 to 1"))
        }
        _ => Ok(()),
    }
}

fn erasures(
    field: &str,
    link: &DirectionTable,
    directory: &Path,
) -> Result<ErasureConfig, ScenarioError> {
    let Some(table) = &link.erasure else {
        return Ok(ErasureConfig::Bernoulli { ratio: link.erasure_ratio.unwrap_or(0.0) });
    };
    let field = |name: &str| format!("{field}.erasure.{name}");
    check_fields(table, field)?;
    let loss_ratio = table.loss_ratio.unwrap_or(0.0);
    match (table.kind, &table.path) {
        (ErasureKind::Trace, Some(path)) => read_trace(&directory.join(path))
            .map(ErasureConfig::Trace)
            .map_err(|expected| ScenarioError::value(field("path"), path, expected)),
        (ErasureKind::GilbertElliott, _) => {
            let config = ErasureConfig::GilbertElliott(GilbertElliott {
                loss_ratio,
                burst_packets: table.burst_packets.unwrap_or(1.0),
                good_loss_ratio: table.good_loss_ratio.unwrap_or(0.0),
                bad_loss_ratio: table.bad_loss_ratio.unwrap_or(1.0),
            });
            config.check().map_err(|error| refused(error, field))?;
            Ok(config)
        }
        _ => {
            check_ratio(&field("loss_ratio"), table.loss_ratio)?;
            Ok(ErasureConfig::Bernoulli { ratio: loss_ratio })
        }
    }
}

/// Rejects missing fields of a kind of erasures, and fields of other kinds.
fn check_fields(table: &ErasureTable, field: impl Fn(&str) -> String) -> Result<(), ScenarioError> {
    let is_trace = table.kind == ErasureKind::Trace;
    let is_bursty = table.kind == ErasureKind::GilbertElliott;
    let given = [
        ("loss_ratio", !is_trace, !is_trace, table.loss_ratio.is_some()),
        ("burst_packets", is_bursty, is_bursty, table.burst_packets.is_some()),
        ("good_loss_ratio", false, is_bursty, table.good_loss_ratio.is_some()),
        ("bad_loss_ratio", false, is_bursty, table.bad_loss_ratio.is_some()),
        ("path", is_trace, is_trace, table.path.is_some()),
    ];
    for (name, is_needed, is_allowed, is_given) in given {
        if is_needed && !is_given {
            return Err(ScenarioError::missing(field(name), "a value for this kind of erasures"));
        }
        if is_given && !is_allowed {
            let expected = "nothing, for this kind of erasures";
            return Err(ScenarioError::value(field(name), "a value", expected));
        }
    }
    Ok(())
}

fn refused(error: ErasureError, field: impl Fn(&str) -> String) -> ScenarioError {
    match error {
        ErasureError::Ratio { field: name, given, least, most } => {
            ScenarioError::value(field(name), given, format!("{least} to {most}"))
        }
        ErasureError::AlwaysBad { given } => {
            ScenarioError::value(field("loss_ratio"), given, "less than bad_loss_ratio")
        }
        ErasureError::BurstPackets { given, least } => {
            ScenarioError::value(field("burst_packets"), given, format!("{least} or more"))
        }
        other => ScenarioError::value(field("kind"), "what it is", other.to_string()),
    }
}

fn read_trace(path: &Path) -> Result<LossTrace, String> {
    let unreadable = |error| format!("a file to read: {error}");
    let len = fs::metadata(path).map_err(unreadable)?.len();
    if len > TRACE_BYTES_MAX {
        return Err(format!("a file of at most {TRACE_BYTES_MAX} bytes, not {len}"));
    }
    let text = fs::read(path).map_err(unreadable)?;
    LossTrace::parse(&text).map_err(|error| error.to_string())
}
