use super::flags::{DrillFlags, ProtocolFlag};
use crate::scenario_file;
use tidegate_sim::shell::word;

/// Placeholder of a token: reports are passed on, tokens must not be.
const TOKEN: &str = "TOKEN";

/// Command line that repeats the drill, without flags of output and progress.
pub fn again(flags: &DrillFlags, scenario: &str, seed: u64) -> String {
    // All flags are named here so that a new one can't be forgotten.
    let DrillFlags {
        scenario: _,
        list: _,
        target,
        upstreams,
        tokens,
        critical_path,
        short,
        seed: _,
        duration,
        protocol,
        connections,
        html: _,
        json: _,
        record: _,
        lasts: _,
        force: _,
        no_progress: _,
    } = flags;
    let mut command =
        format!("tidegate drill {} --seed {seed}", scenario_file::shell_word(scenario));
    let mut add = |flag: &str, value: &str| {
        command += &format!(" --{flag} {}", word(value));
    };
    if let Some(duration) = duration {
        add("duration", &format!("{}s", duration.as_secs_f64()));
    }
    if let Some(target) = target {
        add("target", &target.to_string());
    }
    if !upstreams.is_empty() {
        let urls: Vec<_> = upstreams.iter().map(ToString::to_string).collect();
        add("upstreams", &urls.join(","));
    }
    for (name, _) in tokens {
        add("token", &format!("{name}={TOKEN}"));
    }
    if critical_path != DrillFlags::CRITICAL_PATH {
        add("critical-path", critical_path);
    }
    if *protocol == ProtocolFlag::H2 {
        add("protocol", "h2");
    }
    if *connections != DrillFlags::CONNECTIONS {
        add("connections", &connections.to_string());
    }
    if *short {
        command += " --short";
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser as _;

    fn parsed(args: &[&str]) -> DrillFlags {
        let line = ["tidegate", "drill"].iter().chain(args);
        match Cli::try_parse_from(line).unwrap().command {
            Command::Drill(flags) => *flags,
            other => panic!("{other:?}"),
        }
    }

    fn command(args: &[&str]) -> String {
        let flags = parsed(args);
        again(&flags, flags.scenario.as_deref().unwrap(), flags.seed.unwrap_or(1))
    }

    #[test]
    fn the_command_repeats_the_drill() {
        let args = [
            "/tmp/my scenario.toml",
            "--target",
            "http://h:1/p?q=1&r",
            "--upstreams",
            "http://h:2,http://h:3",
            "--critical-path",
            "/live",
            "--short",
            "--seed",
            "7",
            "--duration",
            "1.5m",
            "--protocol",
            "h2",
            "--connections",
            "9",
            "--html",
            "a.html",
            "--json",
            "--no-progress",
        ];
        let typed = command(&args);
        assert_eq!(
            typed,
            "tidegate drill '/tmp/my scenario.toml' --seed 7 --duration 90s --target \
             'http://h:1/p?q=1&r' --upstreams http://h:2/,http://h:3/ --critical-path /live \
             --protocol h2 --connections 9 --short"
        );
        let unquoted = typed.replace("/my scenario.toml", "/my_scenario.toml").replace('\'', "");
        let again: Vec<_> = unquoted.split(' ').skip(2).collect();
        assert_eq!(command(&again).replace('\'', ""), unquoted);
    }

    #[test]
    fn defaults_and_tokens_are_left_out() {
        assert_eq!(command(&["low_flood"]), "tidegate drill low_flood --seed 1");
        let with_token = command(&["a", "--target", "http://h:1", "--token", "acme=secret"]);
        assert_eq!(with_token, "tidegate drill a --seed 1 --target http://h:1/ --token acme=TOKEN");
        assert_eq!(command(&["--", "-x.toml"]), "tidegate drill ./-x.toml --seed 1");
    }
}
