//! What `pantile --help` shows: the verbs under headings, generated from the verbs themselves.

use std::fmt::Write;

use clap::{Command, CommandFactory};

use crate::args::Cli;
use crate::exit::STATUSES;

/// A heading, and the verbs under it with an example each.
type Group = (&'static str, &'static [(&'static str, &'static str)]);

const GROUPS: [Group; 2] = [
    (
        "Looking after a database",
        &[
            ("check", "pantile check /data/shop"),
            ("inspect", "pantile inspect /data/shop"),
            ("top", "pantile top /data/shop"),
            ("backup", "pantile backup /data/shop --to /backups/monday"),
            ("restore", "pantile restore /backups/monday --to /data/shop"),
            ("salvage", "pantile salvage /data/shop --into /data/shop.new"),
            ("compact", "pantile compact /data/shop"),
            ("dump", "pantile dump /data/shop --into shop-text"),
            ("load", "pantile load /data/new --create --from shop-text"),
            ("shell", "pantile shell /data/shop"),
        ],
    ),
    (
        "Laboratory",
        &[
            ("bench", "pantile bench tpcc --warehouses 1 --seconds 10 --medium dram"),
            ("paper", "pantile paper --quick"),
            ("space", "pantile space price --targets 1.5,2"),
            ("crashtest", "pantile crashtest --rounds 20"),
        ],
    ),
];

/// The definition of the command line.
pub fn command() -> Command {
    let command = Cli::command();
    let template = template(&command);
    command.help_template(template)
}

fn template(command: &Command) -> String {
    let mut text = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    let (mut examples, mut statuses) = ("Examples:\n".to_owned(), "Exit status:\n".to_owned());
    for (heading, verbs) in GROUPS {
        text += &format!("\n{heading}:\n");
        for (verb, example) in verbs {
            let about = command.find_subcommand(verb).and_then(Command::get_about);
            let about = about.map_or_else(String::new, ToString::to_string);
            // Writing to a string does not fail.
            let _ = writeln!(text, "  {verb:<10} {about}");
            let _ = writeln!(examples, "  {example}");
        }
    }
    for (status, meaning) in STATUSES {
        let _ = writeln!(statuses, "  {}  {meaning}", status as u8);
    }
    text + &format!(
        "\nOptions:\n{{options}}\n\n{examples}\n{statuses}\n`pantile VERB --help` describes a verb.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_stands_under_one_heading() {
        let mut grouped: Vec<_> =
            GROUPS.iter().flat_map(|(_, verbs)| *verbs).map(|(verb, _)| *verb).collect();
        let command = command();
        let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set());
        let mut verbs: Vec<_> = verbs.map(Command::get_name).collect();
        grouped.sort_unstable();
        verbs.sort_unstable();
        assert_eq!(grouped, verbs);
    }

    #[test]
    fn examples_are_command_lines() {
        for (verb, example) in GROUPS.iter().flat_map(|(_, verbs)| *verbs) {
            assert!(example.starts_with(&format!("pantile {verb} ")), "{example}");
            command().try_get_matches_from(example.split(' ')).expect(example);
        }
    }
}
