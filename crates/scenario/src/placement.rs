//! From tables to radios: positions of nodes, and links between them, with every value checked.

use core::ops::RangeInclusive;
use core::time::Duration;
use std::fs;
use std::path::Path;

use corridor_air::dcf::{DcfConfig, RateControl};
use corridor_air::radio::{
    Capture, DSSS, Decoding, Fading, Links, MacConfig, OFDM, PathLoss, RadioConfig, RadioLink,
    RadioMediumConfig, RadioStation, Rate, Receiver,
};
use corridor_air::wpan::{Backoff, WpanConfig};
use corridor_air::{Duplex, Jitter, Link, MAX_SPAN, MAX_STATIONS, MediumConfig};
use corridor_base::StreamKey;
use corridor_base::rand::Rng;

use crate::error::ScenarioError;
use crate::limits::NODES_MAX;
use crate::network::{NetworkTable, Shape};
use crate::one_or_many::OneOrMany;
use crate::radio::*;

/// Longest file of positions or of a matrix, bytes.
pub const PLACES_BYTES_MAX: u64 = 1 << 26;
/// Most radios of a network.
pub const RADIOS_MAX: usize = 64;
/// Longest period of fading, seconds.
const PERIOD_S_MAX: f64 = 1e6;
/// Largest coordinate of a node, metres.
const METRES_MAX: f64 = 1e7;
/// Bytes of header and FCS of 802.11 data frames, with LLC and SNAP.
const DCF_HEADER_BYTES: u32 = 36;
/// Default transmission power of a card, dBm.
const DCF_POWER_DBM: f64 = 16.0;
/// Free-space loss at a metre, at 5.15 and at 2.4 GHz, dB.
const REFERENCE_DB: [f64; 2] = [46.68, 40.05];

/// A radio of a network, on a channel of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The node at each of its places.
    pub nodes: Vec<usize>,
    /// What joins the places.
    pub air: Air,
}

/// Positions of a network's nodes, metres; `None` if only their links are known.
pub(crate) type Places = Option<Vec<[f64; 3]>>;

/// Radios with or without a standard's MAC.
#[derive(Clone, Debug, PartialEq)]
pub enum Air {
    /// An ideal medium: nothing collides.
    Ideal(MediumConfig),
    /// A standard's MAC.
    Mac(Box<RadioMediumConfig>),
}

/// Makes a network's radios; returns them with the number of nodes and their positions. Files are
/// looked up in `directory`.
pub(crate) fn cells(
    table: &NetworkTable,
    seed: u64,
    directory: &Path,
) -> Result<(usize, Places, Vec<Cell>), ScenarioError> {
    let radios: Vec<_> = table.radio.iter().flat_map(OneOrMany::iter).collect();
    if radios.is_empty() {
        let expected = "a table with the mac of the radios";
        return Err(ScenarioError::missing("network.radio", expected));
    }
    if radios.len() > RADIOS_MAX {
        let given = format!("{} tables", radios.len());
        let expected = format!("at most {RADIOS_MAX}");
        return Err(ScenarioError::value("network.radio", given, expected));
    }
    // With a matrix, each radio's file says which nodes hear each other.
    let (nodes, metres) = match table.kind {
        Shape::Matrix => (count("nodes", table.nodes, 2, NODES_MAX)?, None),
        _ => {
            let metres = places(table, seed, directory)?;
            (metres.len(), Some(metres))
        }
    };
    let mut cells = Vec::new();
    for (index, radio) in radios.into_iter().enumerate() {
        let made = cell(table, radio, (nodes, metres.as_deref()), (seed, directory));
        let in_list = matches!(table.radio, Some(OneOrMany::Many(_)));
        let placed = |error: ScenarioError| match in_list {
            true => error.of_item("network.radio", index),
            false => error,
        };
        cells.push(made.map_err(placed)?);
    }
    Ok((nodes, metres, cells))
}

/// Makes one radio of a network with this number of nodes, which may have positions.
fn cell(
    table: &NetworkTable,
    radio: &RadioTable,
    (nodes, metres): (usize, Option<&[[f64; 3]]>),
    (seed, directory): (u64, &Path),
) -> Result<Cell, ScenarioError> {
    check_keys(radio)?;
    let members = members(radio, nodes)?;
    let air = match metres {
        None => {
            let mut rows = matrix(table, radio, directory)?;
            rows.retain_mut(|row| {
                let place = |node: f64| members.iter().position(|&member| member as f64 == node);
                let ends = place(row[0]).zip(place(row[1]));
                if let Some((from, to)) = ends {
                    (row[0], row[1]) = (from as f64, to as f64);
                }
                ends.is_some()
            });
            by_matrix(radio, members.len(), &rows, seed)?
        }
        Some(metres) => {
            if radio.path.is_some() {
                let expected = "nothing: the links are those between places";
                return Err(ScenarioError::value("network.radio.path", "a file", expected));
            }
            let metres: Vec<_> = members.iter().map(|&node| metres[node]).collect();
            by_distance(radio, &metres, seed)?
        }
    };
    Ok(Cell { nodes: members, air })
}

/// The nodes that have a radio.
fn members(radio: &RadioTable, nodes: usize) -> Result<Vec<usize>, ScenarioError> {
    let Some(given) = &radio.nodes else { return Ok((0..nodes).collect()) };
    let mut seen = given.clone();
    seen.sort_unstable();
    seen.dedup();
    let is_sound = seen.len() == given.len() && seen.len() >= 2;
    if !is_sound || seen.last().is_some_and(|&node| node >= nodes) {
        let expected = format!("two or more nodes from 0 to {}, each once", nodes - 1);
        return Err(ScenarioError::value("network.radio.nodes", format!("{given:?}"), expected));
    }
    Ok(given.clone())
}

/// Positions of the nodes.
fn places(
    table: &NetworkTable,
    seed: u64,
    directory: &Path,
) -> Result<Vec<[f64; 3]>, ScenarioError> {
    match table.kind {
        Shape::Line => {
            let spacing_m = metres("spacing_m", table.spacing_m, "from each node to the next")?;
            let nodes = count("nodes", table.nodes, 2, NODES_MAX)?;
            Ok((0..nodes).map(|node| [node as f64 * spacing_m, 0.0, 0.0]).collect())
        }
        Shape::Grid => {
            let spacing_m = metres("spacing_m", table.spacing_m, "from each node to the next")?;
            let columns = count("columns", table.columns, 1, NODES_MAX)?;
            let rows = count("rows", table.rows, 1, NODES_MAX / columns)?;
            let row_spacing_m = match table.row_spacing_m {
                None => spacing_m,
                given => metres("row_spacing_m", given, "from each row to the next")?,
            };
            let place = |node: usize| {
                let (column, row) = ((node % columns) as f64, (node / columns) as f64);
                [column * spacing_m, row * row_spacing_m, 0.0]
            };
            Ok((0..columns * rows).map(place).collect())
        }
        Shape::Star => {
            let radius_m = metres("spacing_m", table.spacing_m, "from the centre to the others")?;
            let nodes = count("nodes", table.nodes, 2, NODES_MAX)?;
            let around = |node: usize| {
                let turn = (node - 1) as f64 / (nodes - 1) as f64;
                let (sin, cos) = libm::sincos(2.0 * core::f64::consts::PI * turn);
                [radius_m * cos, radius_m * sin, 0.0]
            };
            Ok(core::iter::once([0.0; 3]).chain((1..nodes).map(around)).collect())
        }
        Shape::Random => {
            let width_m = metres("width_m", table.width_m, "of the area")?;
            let height_m = metres("height_m", table.height_m, "of the area")?;
            let nodes = count("nodes", table.nodes, 2, NODES_MAX)?;
            // The same positions in all replications.
            let place = |node: usize| {
                let entity = node as u64;
                let key = StreamKey { seed, replication: 0, entity, purpose: "place" };
                let mut stream = key.stream();
                let mut share = || f64::from(stream.next_u32()) / 4_294_967_296.0;
                [share() * width_m, share() * height_m, 0.0]
            };
            Ok((0..nodes).map(place).collect())
        }
        _ => {
            let what = "x, y, and z where it is not 0, in metres";
            let rows = numbers(("network.path", table.path.as_ref()), directory, what, 2..=3)?;
            let place = |row: &Vec<f64>| [row[0], row[1], row.get(2).copied().unwrap_or(0.0)];
            let places: Vec<_> = rows.iter().map(place).collect();
            if !(2..=NODES_MAX).contains(&places.len()) {
                let expected = format!("a file of 2 to {NODES_MAX} lines");
                let given = format!("{} lines", places.len());
                return Err(ScenarioError::value("network.path", given, expected));
            }
            Ok(places)
        }
    }
}

/// The lines of a radio's matrix: from, to, loss in dB, and loss ratio.
fn matrix(
    table: &NetworkTable,
    radio: &RadioTable,
    directory: &Path,
) -> Result<Vec<Vec<f64>>, ScenarioError> {
    let nodes = count("nodes", table.nodes, 2, NODES_MAX)?;
    let what = "from, to, loss in dB (ideal: share of frames lost), and share of frames lost";
    let (field, path) = match &radio.path {
        Some(path) => ("network.radio.path", Some(path)),
        None => ("network.path", table.path.as_ref()),
    };
    let rows = numbers((field, path), directory, what, 3..=4)?;
    let is_node = |number: f64| number >= 0.0 && number < nodes as f64 && number.fract() == 0.0;
    match rows.iter().find(|row| !is_node(row[0]) || !is_node(row[1])) {
        Some(row) => {
            let expected = format!("lines that begin with two nodes from 0 to {}", nodes - 1);
            let given = format!("{} {}", row[0], row[1]);
            Err(ScenarioError::value(field, given, expected))
        }
        None => Ok(rows),
    }
}

/// The numbers in each line of the file; text after a # is ignored.
pub(crate) fn numbers(
    (field, path): (&str, Option<&String>),
    directory: &Path,
    what: &str,
    columns: RangeInclusive<usize>,
) -> Result<Vec<Vec<f64>>, ScenarioError> {
    let expected = format!("a file with lines of numbers: {what}");
    let Some(path) = path else {
        return Err(ScenarioError::missing(field, expected));
    };
    let refused = |given: String| ScenarioError::value(field, given, expected.as_str());
    let file = directory.join(path);
    let len = fs::metadata(&file).map_err(|error| refused(format!("{path}: {error}")))?.len();
    if len > PLACES_BYTES_MAX {
        return Err(refused(format!("{path} of {len} bytes, more than {PLACES_BYTES_MAX}")));
    }
    let text = fs::read_to_string(&file).map_err(|error| refused(format!("{path}: {error}")))?;
    let mut rows = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        let words = line.split([',', ' ', '\t']).filter(|word| !word.is_empty());
        let row: Result<Vec<f64>, _> = words.map(str::parse).collect();
        let is_sound = |row: &Vec<f64>| {
            columns.contains(&row.len()) && row.iter().all(|number| number.abs() <= METRES_MAX)
        };
        match row {
            Ok(row) if row.is_empty() => {}
            Ok(row) if is_sound(&row) => rows.push(row),
            _ => return Err(refused(format!("{path}, line {}: {line}", index + 1))),
        }
    }
    Ok(rows)
}

/// Rejects keys of other MACs.
fn check_keys(radio: &RadioTable) -> Result<(), ScenarioError> {
    use MacKind::{Dcf, Ideal, Wpan};
    let given = [
        ("standard", radio.standard.is_some(), &[Dcf][..]),
        ("rate_bps", radio.rate_bps.is_some(), &[Dcf, Ideal]),
        ("rate_control", radio.rate_control, &[Dcf]),
        ("rates_bps", radio.rates_bps.is_some(), &[Dcf]),
        ("header_bytes", radio.header_bytes.is_some(), &[Dcf, Wpan]),
        ("rts_threshold_bytes", radio.rts_threshold_bytes.is_some(), &[Dcf]),
        ("backoff", radio.backoff.is_some(), &[Wpan]),
        ("ack_wait_ms", radio.ack_wait_ms.is_some(), &[Wpan]),
        ("acknowledged", radio.acknowledged.is_some(), &[Wpan]),
        ("power_dbm", radio.power_dbm.is_some(), &[Dcf, Wpan]),
        ("powers_dbm", radio.powers_dbm.is_some(), &[Dcf, Wpan]),
        ("noise_dbm", radio.noise_dbm.is_some(), &[Dcf, Wpan]),
        ("sensitivity_dbm", radio.sensitivity_dbm.is_some(), &[Dcf, Wpan]),
        ("sense_dbm", radio.sense_dbm.is_some(), &[Dcf, Wpan]),
        ("sinr_db", radio.sinr_db.is_some(), &[Dcf, Wpan]),
        ("capture_db", radio.capture_db.is_some(), &[Dcf, Wpan]),
        ("capture_us", radio.capture_us.is_some(), &[Dcf, Wpan]),
        ("path_loss", radio.path_loss.is_some(), &[Dcf, Wpan]),
        ("fading", radio.fading.is_some(), &[Dcf, Wpan]),
        ("reach_m", radio.reach_m.is_some(), &[Ideal]),
        ("erasure_ratio", radio.erasure_ratio.is_some(), &[Ideal]),
        ("overhead_us", radio.overhead_us.is_some(), &[Ideal]),
    ];
    match given.iter().find(|(_, given, of)| *given && !of.contains(&radio.mac)) {
        Some((name, _, _)) => {
            let expected = "nothing: it is of another mac";
            Err(ScenarioError::value(format!("network.radio.{name}"), "a value", expected))
        }
        None => Ok(()),
    }
}

fn by_distance(radio: &RadioTable, metres: &[[f64; 3]], seed: u64) -> Result<Air, ScenarioError> {
    if radio.mac != MacKind::Ideal {
        let table = radio.path_loss.clone().unwrap_or_default();
        let reference_db = REFERENCE_DB[usize::from(!is_at_5_ghz(radio))];
        let path_loss = PathLoss {
            reference_db: table.reference_db.unwrap_or(reference_db),
            reference_m: table.reference_m,
            exponent: table.exponent,
            extra_db: table.extra_db,
            shadowing_db: table.shadowing_db,
            is_fixed: table.fixed,
        };
        let links = Links::Positions { metres: metres.to_vec(), path_loss };
        return with_mac(radio, metres.len(), links, seed);
    }
    check_ideal_nodes(metres.len())?;
    let reach_m =
        self::metres("radio.reach_m", radio.reach_m, "within which nodes hear each other")?;
    let near = |a: usize, b: usize| {
        let square = |axis: usize| {
            let apart = metres[a][axis] - metres[b][axis];
            apart * apart
        };
        square(0) + square(1) + square(2) <= reach_m * reach_m
    };
    let mut links = Vec::new();
    for from in 0..metres.len() {
        for to in (0..metres.len()).filter(|&to| to != from && near(from, to)) {
            links.push((from, to, radio.erasure_ratio.unwrap_or(0.0)));
        }
    }
    ideal(radio, metres.len(), &links, seed)
}

/// Whether the radios use 5 GHz, as 802.11a does. All others use 2.4 GHz.
fn is_at_5_ghz(radio: &RadioTable) -> bool {
    radio.mac == MacKind::Dcf && radio.standard.unwrap_or_default() == Dot11::A
}

fn by_matrix(
    radio: &RadioTable,
    nodes: usize,
    rows: &[Vec<f64>],
    seed: u64,
) -> Result<Air, ScenarioError> {
    let ends = |row: &Vec<f64>| (row[0] as usize, row[1] as usize);
    if radio.mac == MacKind::Ideal {
        let foreign = [("reach_m", radio.reach_m), ("erasure_ratio", radio.erasure_ratio)];
        if let Some((name, Some(given))) = foreign.iter().find(|(_, given)| given.is_some()) {
            let expected = "nothing: the matrix says who hears whom, and what is lost";
            return Err(ScenarioError::value(format!("network.radio.{name}"), given, expected));
        }
        if let Some(row) = rows.iter().find(|row| row.len() > 3) {
            let given = format!("a line of {} numbers, from {} to {}", row.len(), row[0], row[1]);
            let expected = "lines of from, to, and share of frames lost, with mac = \"ideal\"";
            return Err(ScenarioError::value("network.path", given, expected));
        }
        let links = rows.iter().map(|row| (ends(row).0, ends(row).1, row[2]));
        return ideal(radio, nodes, &links.collect::<Vec<_>>(), seed);
    }
    if radio.path_loss.is_some() {
        let expected = "nothing: the matrix says the losses";
        return Err(ScenarioError::value("network.radio.path_loss", "a table", expected));
    }
    let link = |row: &Vec<f64>| {
        let (from, to) = ends(row);
        let erasure = row.get(3).copied().unwrap_or(0.0).into();
        RadioLink { erasure, ..RadioLink::new(from, to, row[2]) }
    };
    with_mac(radio, nodes, Links::Matrix(rows.iter().map(link).collect()), seed)
}

/// Rejects more nodes than an ideal channel may have, before it makes links between all of them.
fn check_ideal_nodes(nodes: usize) -> Result<(), ScenarioError> {
    if nodes > MAX_STATIONS {
        let expected = format!("at most {MAX_STATIONS} with mac = \"ideal\"");
        return Err(ScenarioError::value("network.nodes", nodes, expected));
    }
    Ok(())
}

/// One channel for all, without collisions.
fn ideal(
    radio: &RadioTable,
    nodes: usize,
    links: &[(usize, usize, f64)],
    seed: u64,
) -> Result<Air, ScenarioError> {
    check_ideal_nodes(nodes)?;
    let retry_limit = radio.retries.unwrap_or(0);
    let link = |&(from, to, ratio): &(usize, usize, f64)| Link {
        from,
        to,
        erasure: ratio.into(),
        retry_limit,
    };
    let Some(rate_bps) = radio.rate_bps else {
        return Err(ScenarioError::missing("network.radio.rate_bps", "bits per second"));
    };
    let config = MediumConfig {
        mode: Duplex::Half,
        rate_bps,
        overhead: span_us("overhead_us", radio.overhead_us.unwrap_or(0.0))?,
        propagation: span_us("propagation_us", radio.propagation_us)?,
        jitter: Jitter::None,
        queue_frames: radio.queue_frames,
        drops_when_full: false,
        stations: nodes,
        links: links.iter().map(link).collect(),
        seed,
        replication: 0,
    };
    config.check().map_err(refused)?;
    Ok(Air::Ideal(config))
}

fn with_mac(
    radio: &RadioTable,
    nodes: usize,
    links: Links,
    seed: u64,
) -> Result<Air, ScenarioError> {
    let (mac, receiver, power_dbm) = match radio.mac {
        MacKind::Wpan => (MacConfig::Wpan(wpan(radio)?), Receiver::DOT15_4, 0.0),
        _ => (MacConfig::Dcf(dcf(radio)?), Receiver::DOT11, DCF_POWER_DBM),
    };
    let powers_dbm = powers(radio, nodes, power_dbm)?;
    let station = |power_dbm| RadioStation { power_dbm, ..RadioStation::default() };
    let stations = powers_dbm.into_iter().map(station).collect();
    let fading = radio.fading.as_ref().map_or(Ok(Fading::None), fading)?;
    let config = RadioMediumConfig {
        radio: RadioConfig {
            stations,
            links,
            fading,
            receiver: heard(radio, receiver)?,
            propagation: span_us("propagation_us", radio.propagation_us)?,
            seed,
            replication: 0,
        },
        mac,
        queue_frames: radio.queue_frames,
    };
    config.radio.check().map_err(refused)?;
    match &config.mac {
        MacConfig::Dcf(dcf) => dcf.check().map_err(refused)?,
        MacConfig::Wpan(wpan) => wpan.check().map_err(refused)?,
    }
    Ok(Air::Mac(Box::new(config)))
}

/// Power of each node, dBm; `by_default` unless the table gives it.
fn powers(radio: &RadioTable, nodes: usize, by_default: f64) -> Result<Vec<f64>, ScenarioError> {
    let Some(powers_dbm) = &radio.powers_dbm else {
        return Ok(vec![radio.power_dbm.unwrap_or(by_default); nodes]);
    };
    if radio.power_dbm.is_some() || powers_dbm.len() != nodes {
        let expected = format!("{nodes} values, one for each node, and no power_dbm beside");
        let given = format!("{} values", powers_dbm.len());
        return Err(ScenarioError::value("network.radio.powers_dbm", given, expected));
    }
    Ok(powers_dbm.clone())
}

/// A receiver with the table's changes.
fn heard(radio: &RadioTable, of: Receiver) -> Result<Receiver, ScenarioError> {
    let sensitivity_dbm = radio.sensitivity_dbm.unwrap_or(of.sensitivity_dbm);
    let sense_dbm = radio.sense_dbm.unwrap_or(of.sense_dbm);
    let window = match radio.capture_us {
        Some(us) if radio.capture_db.is_none() => {
            let expected = "nothing without capture_db";
            return Err(ScenarioError::value("network.radio.capture_us", us, expected));
        }
        Some(us) => span_us("capture_us", us)?,
        None => MAX_SPAN,
    };
    let capture = |margin_db| Capture { margin_db, window };
    Ok(Receiver {
        noise_dbm: radio.noise_dbm.unwrap_or(of.noise_dbm),
        sensitivity_dbm,
        sense_dbm,
        floor_dbm: of.floor_dbm.min(sensitivity_dbm).min(sense_dbm),
        decoding: radio.sinr_db.map_or(of.decoding, |sinr_db| Decoding::Threshold { sinr_db }),
        capture: radio.capture_db.map(capture),
        ..of
    })
}

fn dcf(radio: &RadioTable) -> Result<DcfConfig, ScenarioError> {
    let standard = radio.standard.unwrap_or_default();
    let rates: &[Rate] = if standard == Dot11::B { &DSSS } else { &OFDM };
    let bps = radio.rate_bps.unwrap_or(rates[0].bps());
    let Some(&rate) = rates.iter().find(|rate| rate.bps() == bps) else {
        let known: Vec<_> = rates.iter().map(|rate| rate.bps().to_string()).collect();
        let expected = format!("one of {} bit/s", known.join(", "));
        return Err(ScenarioError::value("network.radio.rate_bps", bps, expected));
    };
    let of = match standard {
        Dot11::A => DcfConfig::a(rate),
        Dot11::B => DcfConfig::b(rate),
        Dot11::G => DcfConfig::g(rate, true),
    };
    Ok(DcfConfig {
        retry_limit: radio.retries.map_or(of.retry_limit, Some),
        long_retry_limit: radio.retries.map_or(of.long_retry_limit, Some),
        rts_threshold_bytes: radio.rts_threshold_bytes.unwrap_or(of.rts_threshold_bytes),
        header_bytes: radio.header_bytes.unwrap_or(DCF_HEADER_BYTES),
        rates: match radio.rate_control {
            true => RateControl::Minstrel(chosen_of(radio, rates)?),
            false => of.rates,
        },
        ..of
    })
}

/// The rates among which rate control chooses.
fn chosen_of(radio: &RadioTable, rates: &[Rate]) -> Result<Vec<Rate>, ScenarioError> {
    let Some(bps) = &radio.rates_bps else { return Ok(rates.to_vec()) };
    let known = |bps: &u64| rates.iter().copied().find(|rate| rate.bps() == *bps);
    let chosen: Option<Vec<Rate>> = bps.iter().map(known).collect();
    chosen.filter(|chosen| !chosen.is_empty()).ok_or_else(|| {
        let known: Vec<_> = rates.iter().map(|rate| rate.bps().to_string()).collect();
        let expected = format!("some of {} bit/s", known.join(", "));
        ScenarioError::value("network.radio.rates_bps", format!("{bps:?}"), expected)
    })
}

/// Converts one of the two kinds of fading.
fn fading(table: &FadingTable) -> Result<Fading, ScenarioError> {
    match *table {
        FadingTable { k, doppler_hz: Some(doppler_hz), sigma_db: None, period_s: None } => {
            Ok(Fading::Rician { k: k.unwrap_or(0.0), doppler_hz })
        }
        FadingTable {
            k: None,
            doppler_hz: None,
            sigma_db: Some(sigma_db),
            period_s: Some(period_s),
        } if period_s > 0.0 && period_s <= PERIOD_S_MAX => {
            let period = Duration::from_nanos((period_s * 1e9).round() as u64);
            Ok(Fading::LogNormal { sigma_db, period })
        }
        _ => {
            let expected =
                format!("k and doppler_hz, or sigma_db and period_s up to {PERIOD_S_MAX} s");
            Err(ScenarioError::value("network.radio.fading", format!("{table:?}"), expected))
        }
    }
}

fn wpan(radio: &RadioTable) -> Result<WpanConfig, ScenarioError> {
    let of = WpanConfig::default();
    let ack_wait = radio.ack_wait_ms.map(|ms| span_us("ack_wait_ms", ms * 1e3)).transpose()?;
    Ok(WpanConfig {
        backoff: match radio.backoff.unwrap_or_default() {
            BackoffKind::Standard => Backoff::STANDARD,
            BackoffKind::ExponentialPaper => Backoff::EXPONENTIAL_PAPER,
            BackoffKind::TinyosPaper => Backoff::TINYOS_PAPER,
            BackoffKind::TinyosSource => Backoff::TINYOS_SOURCE,
        },
        acknowledged: radio.acknowledged.unwrap_or(of.acknowledged),
        retries: radio.retries.unwrap_or(of.retries),
        header_bytes: radio.header_bytes.unwrap_or(of.header_bytes),
        ack_wait: ack_wait.unwrap_or(of.ack_wait),
        ..of
    })
}

/// Checks routes: paths of several distinct nodes, over existing radios.
pub(crate) fn check_routes(
    routes: &[RouteTable],
    nodes: usize,
    radios: usize,
) -> Result<(), ScenarioError> {
    for (index, route) in routes.iter().enumerate() {
        let mut seen = route.path.clone();
        seen.sort_unstable();
        seen.dedup();
        let is_sound = seen.len() == route.path.len() && seen.len() >= 2;
        if !is_sound || seen.last().is_some_and(|&node| node >= nodes) {
            let expected = format!("two or more nodes from 0 to {}, each once", nodes - 1);
            let field = format!("network.route[{index}].path");
            return Err(ScenarioError::value(field, format!("{:?}", route.path), expected));
        }
        if let Some(given) = &route.radios
            && (given.len() + 1 != route.path.len() || given.iter().any(|&radio| radio >= radios))
        {
            let hops = route.path.len() - 1;
            let expected = format!("the numbers of {hops} radios, one a hop, below {radios}");
            let field = format!("network.route[{index}].radios");
            return Err(ScenarioError::value(field, format!("{given:?}"), expected));
        }
    }
    Ok(())
}

fn count(
    name: &str,
    given: Option<usize>,
    least: usize,
    most: usize,
) -> Result<usize, ScenarioError> {
    let (field, expected) = (format!("network.{name}"), format!("{least} to {most}"));
    match given {
        None => Err(ScenarioError::missing(field, expected)),
        Some(given) if !(least..=most).contains(&given) => {
            Err(ScenarioError::value(field, given, expected))
        }
        Some(given) => Ok(given),
    }
}

fn metres(name: &str, given: Option<f64>, what: &str) -> Result<f64, ScenarioError> {
    let field = format!("network.{name}");
    let expected = format!("metres {what}, more than 0, at most {METRES_MAX}");
    match given {
        None => Err(ScenarioError::missing(field, expected)),
        Some(given) if !(given > 0.0 && given <= METRES_MAX) => {
            Err(ScenarioError::value(field, given, expected))
        }
        Some(given) => Ok(given),
    }
}

fn span_us(name: &str, us: f64) -> Result<Duration, ScenarioError> {
    let most = MAX_SPAN.as_secs_f64() * 1e6;
    if !(0.0..=most).contains(&us) {
        let expected = format!("0 to {most} us");
        return Err(ScenarioError::value(format!("network.radio.{name}"), us, expected));
    }
    Ok(Duration::from_nanos((us * 1e3).round() as u64))
}

fn refused(error: impl core::fmt::Display) -> ScenarioError {
    ScenarioError::value("network.radio", "a table", format!("valid values: {error}"))
}
