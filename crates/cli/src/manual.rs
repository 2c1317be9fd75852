//! `corridor completions` and `corridor man`: what packages install besides the binary. Both are
//! generated from the same description of the arguments as `--help`.

use std::io;
use std::path::PathBuf;

use clap::{Command, ValueEnum};
use clap_complete::shells::{Bash, Fish, Zsh};
use clap_complete::{Generator, generate};
use clap_mangen::Man;

use crate::exit::{Exit, print};

/// Name of the binary.
const NAME: &str = "corridor";

/// Arguments of `corridor completions`.
#[derive(Debug, clap::Args)]
pub struct CompletionsArguments {
    /// Shell to generate completions for
    shell: Shell,
}

/// Shells that complete.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Shell {
    /// Install as /usr/share/bash-completion/completions/corridor
    Bash,
    /// Install as /usr/share/zsh/site-functions/_corridor
    Zsh,
    /// Install as /usr/share/fish/vendor_completions.d/corridor.fish
    Fish,
}

/// Arguments of `corridor man`.
#[derive(Debug, clap::Args)]
pub struct ManArguments {
    /// Write one page per command to this directory (corridor.1, corridor-up.1, ...) instead of
    /// printing the main page to standard output
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Prints the completions of a shell.
pub fn completions(arguments: &CompletionsArguments, command: Command) -> Exit {
    let text = match arguments.shell {
        Shell::Bash => completed_by(Bash, command),
        Shell::Zsh => completed_by(Zsh, command),
        Shell::Fish => completed_by(Fish, command),
    };
    print(&text)
}

fn completed_by(shell: impl Generator, mut command: Command) -> String {
    let mut text = Vec::new();
    generate(shell, &mut command, NAME, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// Prints or writes the manual.
pub fn man(arguments: &ManArguments, command: Command) -> Exit {
    let Some(directory) = &arguments.out else {
        return page(command).map_or(Exit::Failure, |text| print(&text));
    };
    let written = std::fs::create_dir_all(directory);
    match written.and_then(|()| clap_mangen::generate_to(command, directory)) {
        Ok(()) => Exit::Success,
        Err(error) => {
            eprintln!("error: cannot write to {}: {error}", directory.display());
            Exit::Failure
        }
    }
}

/// The page of the command itself, without those of its subcommands.
fn page(command: Command) -> io::Result<String> {
    // As in the directory of pages, where `help` has none.
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let mut text = Vec::new();
    Man::new(command).render(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}
