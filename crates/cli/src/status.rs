//! `corridor status`: queries running nodes.

mod layout;
mod prometheus;

use std::fs;
use std::io::{self, BufRead, BufReader, ErrorKind, IsTerminal, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use corridor_node::{
    Answer, CONTROL_VERSION, Request, Since, Status, control_directory, control_socket,
};
use serde_json::Value;

use crate::exit::Exit;
use layout::Layout;

/// Refresh interval of `--watch`.
const INTERVAL: Duration = Duration::from_secs(1);
/// How long a node may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Longest answer that is read, bytes.
const ANSWER_LEN_MAX: u64 = 1 << 20;
/// Moves to the upper left corner; erases the rest of a line; erases everything below.
const HOME: &str = "\x1b[H";
const END_LINE: &str = "\x1b[K\n";
const END_SCREEN: &str = "\x1b[J";

/// Arguments of `corridor status`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Name of a node: its configuration file's name without the extension [default: all running
    /// nodes]
    name: Option<String>,
    /// Print JSON, in SI units: an object with NAME, an array without
    #[arg(long)]
    json: bool,
    /// Refresh every second until Ctrl-C, showing rates and ratios of the last second beside
    /// totals; with --json, print one line per refresh, the changes under `since`
    #[arg(long)]
    watch: bool,
    /// Print metrics in the Prometheus text format, for node_exporter's textfile collector
    #[arg(long, conflicts_with_all = ["json", "watch", "counters"])]
    prometheus: bool,
    /// Also show all counters with their descriptions
    #[arg(long, conflicts_with = "json")]
    counters: bool,
}

/// Why a node's status is unknown.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error(
        "{name} is not running: no node listens on {}{}",
        control_socket(name).display(),
        others.as_ref().map_or_else(String::new, |others| format!("; running: {others}"))
    )]
    NotRunning {
        name: String,
        /// Names of running nodes, if there are any.
        others: Option<String>,
    },
    #[error("no node is running: no control socket in {}", control_directory().display())]
    NoneRunning,
    #[error(
        "permission denied on {what}: only root and the socket's group have access",
        what = what.display()
    )]
    Permission { what: std::path::PathBuf },
    #[error("{name} does not respond: {why}")]
    NoAnswer { name: String, why: String },
    /// Standard output was closed.
    #[error("cannot write to standard output: {0}")]
    Print(io::Error),
}

impl Trouble {
    fn exit(&self) -> Exit {
        match self {
            Trouble::NotRunning { .. } | Trouble::NoneRunning => Exit::NotRunning,
            Trouble::Permission { .. } => Exit::PermissionDenied,
            // `corridor status --watch | head` ends like this.
            Trouble::Print(error) if error.kind() == ErrorKind::BrokenPipe => Exit::Success,
            Trouble::NoAnswer { .. } | Trouble::Print(_) => Exit::Failure,
        }
    }
}

/// Shows the status of nodes.
pub fn status(arguments: &Arguments) -> Exit {
    let shown = if arguments.watch { watch(arguments) } else { show_once(arguments) };
    match shown {
        Ok(()) => Exit::Success,
        Err(trouble) => {
            let exit = trouble.exit();
            if exit != Exit::Success {
                eprintln!("corridor: {trouble}");
            }
            exit
        }
    }
}

fn show_once(arguments: &Arguments) -> Result<(), Trouble> {
    let answers = ask_all(arguments.name.as_deref())?;
    let text = if arguments.json {
        let json = to_json(arguments, answers.into_iter().map(|(_, status)| status).collect());
        format!("{json:#}\n")
    } else if arguments.prometheus {
        prometheus::text(&parse_all(&answers)?)
    } else {
        to_text(arguments, &parse_all(&answers)?, &[])
    };
    print(&text)
}

fn watch(arguments: &Arguments) -> Result<(), Trouble> {
    let screen = io::stdout().is_terminal();
    if screen && !arguments.json {
        print("\x1b[2J")?;
    }
    let mut before: Vec<Status> = Vec::new();
    loop {
        let asked_at = Instant::now();
        let answers = ask_all(arguments.name.as_deref())?;
        let nodes = parse_all(&answers)?;
        if arguments.json {
            let told = answers.into_iter().zip(&nodes).map(|((_, mut answer), status)| {
                answer["since"] = serde_json::to_value(since(status, &before)).unwrap_or_default();
                answer
            });
            print(&format!("{}\n", to_json(arguments, told.collect())))?;
        } else {
            let text = to_text(arguments, &nodes, &before);
            if screen {
                print(&format!("{HOME}{}{END_SCREEN}", text.replace('\n', END_LINE)))?;
            } else {
                print(&format!("{text}\n"))?;
            }
        }
        before = nodes;
        sleep(INTERVAL.saturating_sub(asked_at.elapsed()));
    }
}

/// What has changed since the same node answered `before`; none the first time.
fn since(status: &Status, before: &[Status]) -> Option<Since> {
    before.iter().find_map(|earlier| status.since(earlier))
}

fn to_json(arguments: &Arguments, mut statuses: Vec<Value>) -> Value {
    match &arguments.name {
        Some(_) if statuses.len() == 1 => statuses.remove(0),
        _ => statuses.into(),
    }
}

/// The answers for people; `before`: the previous answers.
fn to_text(arguments: &Arguments, nodes: &[Status], before: &[Status]) -> String {
    let layout = Layout::for_stdout(arguments.counters);
    let texts = nodes.iter().map(|status| layout.text(status, since(status, before).as_ref()));
    texts.collect::<Vec<_>>().join("\n")
}

fn parse_all(answers: &[(String, Value)]) -> Result<Vec<Status>, Trouble> {
    let parse = |(name, status): &(String, Value)| {
        serde_json::from_value(status.clone())
            .map_err(|error| Trouble::NoAnswer { name: name.clone(), why: error.to_string() })
    };
    answers.iter().map(parse).collect()
}

fn print(text: &str) -> Result<(), Trouble> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Trouble::Print)
}

/// Queries the node with this name, or all running nodes. Returns their names and statuses. If one
/// of all nodes does not answer, that is reported, and the others are shown.
fn ask_all(name: Option<&str>) -> Result<Vec<(String, Value)>, Trouble> {
    if let Some(name) = name {
        let status = ask(name).map_err(|trouble| match trouble {
            Trouble::NotRunning { name, .. } => Trouble::NotRunning { name, others: running() },
            other => other,
        })?;
        return Ok(vec![(name.to_owned(), status)]);
    }
    let (mut answers, mut mute) = (Vec::new(), None);
    for name in names()? {
        match ask(&name) {
            Ok(status) => answers.push((name, status)),
            // Left behind, or just ended.
            Err(Trouble::NotRunning { .. }) => {}
            Err(trouble @ Trouble::NoAnswer { .. }) => {
                if let Some(before) = mute.replace(trouble) {
                    eprintln!("corridor: {before}");
                }
            }
            Err(trouble) => return Err(trouble),
        }
    }
    match mute {
        Some(trouble) if answers.is_empty() => Err(trouble),
        None if answers.is_empty() => Err(Trouble::NoneRunning),
        Some(trouble) => {
            eprintln!("corridor: {trouble}");
            Ok(answers)
        }
        None => Ok(answers),
    }
}

/// Names of the running nodes.
fn running() -> Option<String> {
    let mut names = names().ok()?;
    names.retain(|name| UnixStream::connect(control_socket(name)).is_ok());
    Some(names.join(", ")).filter(|names| !names.is_empty())
}

/// Names of all control sockets, sorted.
fn names() -> Result<Vec<String>, Trouble> {
    let directory = control_directory();
    let entries = fs::read_dir(&directory).map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied => Trouble::Permission { what: directory },
        _ => Trouble::NoneRunning,
    })?;
    let stem = |path: &Path| {
        let is_socket = path.extension().is_some_and(|extension| extension == "sock");
        path.file_stem().filter(|_| is_socket).map(|stem| stem.to_string_lossy().into_owned())
    };
    let mut names: Vec<_> = entries.flatten().filter_map(|entry| stem(&entry.path())).collect();
    names.sort();
    Ok(names)
}

/// Queries a node for its status.
fn ask(name: &str) -> Result<Value, Trouble> {
    let failed = |error: io::Error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
            Trouble::NotRunning { name: name.to_owned(), others: None }
        }
        ErrorKind::PermissionDenied => Trouble::Permission { what: control_socket(name) },
        _ => Trouble::NoAnswer { name: name.to_owned(), why: error.to_string() },
    };
    let no_answer = |why: String| Trouble::NoAnswer { name: name.to_owned(), why };
    let mut stream = UnixStream::connect(control_socket(name)).map_err(failed)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    let request = Request { version: CONTROL_VERSION, request: "status".into() };
    let mut request = serde_json::to_vec(&request).map_err(|error| no_answer(error.to_string()))?;
    request.push(b'\n');
    stream.write_all(&request).map_err(failed)?;
    let mut line = Vec::new();
    BufReader::new(stream.take(ANSWER_LEN_MAX)).read_until(b'\n', &mut line).map_err(failed)?;
    let answer: Value =
        serde_json::from_slice(&line).map_err(|error| no_answer(error.to_string()))?;
    if let Some(status) = answer.get("status") {
        return Ok(status.clone());
    }
    let said: Option<Answer> = serde_json::from_value(answer).ok();
    Err(no_answer(said.and_then(|answer| answer.error).unwrap_or_else(|| "no status".into())))
}
