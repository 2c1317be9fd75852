//! TCP settings of plans, for both ends of a connection.

use corridor_base::StreamKey;
use corridor_scenario::values::{replace, span};
use corridor_scenario::{
    AckKind, Beyond, ReductionKind, RtoKind, SamplingKind, TcpPreset, TcpTable, TcpVariant,
};

use crate::tcp::linux::{Congestion, LinuxReceiverConfig, LinuxSenderConfig};
use crate::tcp::{
    Acks, ConfigError, ReceiverConfig, ReceiverSettings, Reduction, RtoEstimator, RttSampling,
    SenderConfig, SenderSettings, Variant, VegasConfig,
};

/// The semi-dynamic timeout over the first round-trip time (constrained-defaults-2012, III-C2).
const SEMI_DYNAMIC_FACTOR: u32 = 4;

/// Payload and header bytes of a packet, where they differ from the preset's.
type LensBytes = (Option<u32>, Option<u32>);

/// Both ends of a preset, with the table's changes.
pub(super) fn tcp_ends(
    tcp: &TcpTable,
    lens_bytes: LensBytes,
) -> Result<(SenderSettings, ReceiverSettings), ConfigError> {
    let preset = match tcp.preset {
        TcpPreset::Linux => {
            let sender = linux_sender(tcp, lens_bytes)?;
            return Ok((sender.into(), linux_receiver(tcp, &sender).into()));
        }
        TcpPreset::Linux2014 => SenderConfig::linux_2014,
        TcpPreset::Ns2 => SenderConfig::ns2,
        TcpPreset::Constrained => SenderConfig::constrained,
    };
    let sender = sender(preset, tcp, lens_bytes)?;
    Ok((sender.into(), receiver(tcp, &sender).into()))
}

/// Linux's sender.
fn linux_sender(tcp: &TcpTable, lens_bytes: LensBytes) -> Result<LinuxSenderConfig, ConfigError> {
    let variant = tcp.variant.unwrap_or(tcp.preset.variant());
    let congestion = match variant {
        TcpVariant::Cubic => Congestion::Cubic,
        TcpVariant::Reno | TcpVariant::NewReno => Congestion::Reno,
        TcpVariant::Bbr => Congestion::Bbr,
        TcpVariant::Tahoe | TcpVariant::Sack | TcpVariant::Vegas | TcpVariant::SlowStart => {
            let given = format!("{variant:?}").to_lowercase();
            let expected = "cubic, reno or bbr with preset = \"linux\"".to_owned();
            return Err(ConfigError { field: "variant", given, expected });
        }
    };
    refuse_others(tcp)?;
    let mut config = LinuxSenderConfig::new(congestion);
    replace(&mut config.window_packets_max, tcp.window_packets_max);
    replace(&mut config.initial_window_packets, tcp.initial_window_packets);
    replace(&mut config.ecn, tcp.ecn);
    replace(&mut config.pacing, tcp.pacing);
    replace(&mut config.hystart, tcp.hystart);
    replace(&mut config.payload_bytes, lens_bytes.0);
    replace(&mut config.header_bytes, lens_bytes.1);
    Ok(config)
}

/// Rejects settings that a Linux kernel does not have.
fn refuse_others(tcp: &TcpTable) -> Result<(), ConfigError> {
    let others = [
        ("initial_ssthresh_packets", tcp.initial_ssthresh_packets.is_some()),
        ("receiver", tcp.receiver.is_some()),
        ("delayed_ack_packets", tcp.delayed_ack_packets.is_some()),
        ("acks", tcp.acks.is_some()),
        ("sack", tcp.sack.is_some()),
        ("rto_initial_s", tcp.rto_initial_s.is_some()),
        ("rto_min_s", tcp.rto_min_s.is_some()),
        ("rto_max_s", tcp.rto_max_s.is_some()),
        ("rto_granularity_s", tcp.rto_granularity_s.is_some()),
        ("limited_transmit", tcp.limited_transmit.is_some()),
        ("careful", tcp.careful.is_some()),
        ("reduction", tcp.reduction.is_some()),
        ("slow_start_restart", tcp.slow_start_restart.is_some()),
        ("rtt_sampling", tcp.rtt_sampling.is_some()),
    ];
    match others.iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some(&(field, _)) => {
            let expected = "nothing with preset = \"linux\"".to_owned();
            Err(ConfigError { field, given: "set".to_owned(), expected })
        }
    }
}

/// Linux's receiver for this sender.
fn linux_receiver(tcp: &TcpTable, sender: &LinuxSenderConfig) -> LinuxReceiverConfig {
    let mut config = LinuxReceiverConfig::new(sender.payload_bytes);
    config.ack_bytes = sender.header_bytes.max(1);
    replace(&mut config.window_packets_max, tcp.window_packets_max);
    replace(&mut config.delayed_ack_timeout, tcp.delayed_ack_timeout_ms.map(|ms| span(ms / 1e3)));
    replace(&mut config.ack_bytes, tcp.ack_bytes);
    config
}

/// The same settings with a seed of the replication, for what is drawn at random.
pub(super) fn seeded(settings: SenderSettings, seed: u64, flow: u32) -> SenderSettings {
    match settings {
        SenderSettings::Linux(config) => LinuxSenderConfig { seed, ..config }.into(),
        SenderSettings::Classic(mut config) => {
            if let RtoEstimator::Coap { key } = &mut config.rto.estimator {
                (key.seed, key.entity) = (seed, u64::from(flow));
            }
            config.into()
        }
    }
}

/// The sender of a preset, with the table's changes.
fn sender(
    preset: fn(Variant) -> SenderConfig,
    tcp: &TcpTable,
    lens_bytes: LensBytes,
) -> Result<SenderConfig, ConfigError> {
    let variant = match tcp.variant.unwrap_or(tcp.preset.variant()) {
        TcpVariant::Tahoe => Variant::Tahoe,
        TcpVariant::Reno => Variant::Reno,
        TcpVariant::NewReno => Variant::NewReno,
        TcpVariant::Sack => Variant::Sack,
        TcpVariant::Cubic => Variant::Cubic,
        TcpVariant::Vegas => Variant::Vegas(VegasConfig::default()),
        TcpVariant::SlowStart => Variant::SlowStart,
        TcpVariant::Bbr => {
            let (field, given) = ("variant", "bbr".to_owned());
            let expected = "preset = \"linux\" for it".to_owned();
            return Err(ConfigError { field, given, expected });
        }
    };
    let mut config = preset(variant);
    replace(&mut config.window_packets_max, tcp.window_packets_max);
    replace(&mut config.initial_window_packets, tcp.initial_window_packets);
    replace(&mut config.initial_ssthresh_packets, tcp.initial_ssthresh_packets.map(Some));
    replace(&mut config.limited_transmit, tcp.limited_transmit);
    replace(&mut config.careful, tcp.careful);
    replace(&mut config.slow_start_restart, tcp.slow_start_restart);
    replace(&mut config.ecn, tcp.ecn);
    let reduction = tcp.reduction.map(|kind| match kind {
        ReductionKind::Window => Reduction::Window,
        ReductionKind::Flight => Reduction::Flight,
    });
    replace(&mut config.reduction, reduction);
    let sampling = tcp.rtt_sampling.map(|kind| match kind {
        SamplingKind::OnePacket => RttSampling::OnePacket,
        SamplingKind::Timestamps => RttSampling::Timestamps,
    });
    replace(&mut config.rtt_sampling, sampling);
    match tcp.rto {
        None | Some(RtoKind::Rfc6298) => {}
        Some(RtoKind::Coap) => {
            // The flow's number is added when it is attached.
            let key = StreamKey { seed: 0, replication: 0, entity: 0, purpose: "rto" };
            config.rto.estimator = RtoEstimator::Coap { key };
        }
        Some(RtoKind::SemiDynamic) => {
            config.rto.estimator = RtoEstimator::FirstSample { k: SEMI_DYNAMIC_FACTOR };
            // "During the session, the value of RTO does not change."
            config.rto.backoff = false;
        }
    }
    replace(&mut config.rto.initial, tcp.rto_initial_s.map(span));
    replace(&mut config.rto.min, tcp.rto_min_s.map(span));
    replace(&mut config.rto.max, tcp.rto_max_s.map(span));
    replace(&mut config.rto.granularity, tcp.rto_granularity_s.map(span));
    replace(&mut config.payload_bytes, lens_bytes.0);
    replace(&mut config.header_bytes, lens_bytes.1);
    Ok(config)
}

/// The receiver for this sender.
fn receiver(tcp: &TcpTable, sender: &SenderConfig) -> ReceiverConfig {
    let mut config = match tcp.preset {
        TcpPreset::Linux2014 => {
            let usual = ReceiverConfig::linux_2014();
            ReceiverConfig { sack: tcp.sack.unwrap_or(usual.sack), ..usual }
        }
        _ => {
            let uses_sack = tcp.variant.is_some_and(TcpVariant::uses_sack);
            ReceiverConfig::ns2(tcp.sack.unwrap_or(uses_sack))
        }
    };
    config.window_packets_max = sender.window_packets_max;
    replace(&mut config.keeps_out_of_order, tcp.receiver.map(|beyond| beyond == Beyond::Keep));
    replace(&mut config.delayed_ack_packets, tcp.delayed_ack_packets);
    replace(&mut config.delayed_ack_timeout, tcp.delayed_ack_timeout_ms.map(|ms| span(ms / 1e3)));
    replace(&mut config.ack_bytes, tcp.ack_bytes);
    let acks = tcp.acks.map(|kind| match kind {
        AckKind::Cumulative => Acks::Cumulative,
        AckKind::Positive => Acks::Positive,
    });
    replace(&mut config.acks, acks);
    config
}
