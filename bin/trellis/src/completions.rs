//! `trellis completions`: scripts by which shells complete the command line.

use anyhow::Result;
use clap::{Args, Command};
use clap_complete::Shell;
use std::io::Write;

/// Arguments of `trellis completions`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    trellis completions bash > /etc/bash_completion.d/trellis\n  \
    trellis completions zsh > ~/.zfunc/_trellis\n  \
    trellis completions fish > ~/.config/fish/completions/trellis.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Prints the script for a shell.
///
/// # Errors
/// Nobody reads it.
pub(crate) fn run(args: &CompletionsArgs, mut command: Command) -> Result<()> {
    Ok(std::io::stdout().write_all(&script(args.shell, &mut command))?)
}

fn script(shell: Shell, command: &mut Command) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, command, "trellis", &mut script);
    script
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn scripts_know_all_commands() {
        let mut command = crate::Cli::command();
        let names: Vec<String> = command
            .get_subcommands()
            .map(|command| command.get_name().to_owned())
            .collect();
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = String::from_utf8(script(shell, &mut command)).expect("text");
            for name in &names {
                assert!(script.contains(&**name), "{shell}: {name}");
            }
            assert!(
                script.contains("--metrics") || script.contains("metrics"),
                "{shell}"
            );
        }
    }

    /// A shell reads its script.
    #[test]
    fn bash_reads_its_script() {
        let script = script(Shell::Bash, &mut crate::Cli::command());
        let mut bash = std::process::Command::new("bash")
            .arg("-n")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("there is a bash");
        let mut input = bash.stdin.take().expect("it was asked for");
        input.write_all(&script).expect("it reads");
        drop(input);
        assert!(bash.wait().expect("it ends").success());
    }
}
