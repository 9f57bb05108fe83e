//! The session in docs/shell.md.

use pantile_shell::Shell;

use crate::home;

/// The session, without the commands of the system above it.
fn session() -> &'static str {
    let text = include_str!("../../../../docs/shell.md");
    let (_, from) = text.split_once("```text\n").expect("a session");
    from.split_once("```").expect("its end").0
}

#[test]
fn the_session_of_the_manual_goes_as_printed() {
    let db = home::new();
    let mut shell = Shell::new(&db, &home::GO_ON);
    let mut replayed = String::new();
    for line in session().lines() {
        let Some(command) = line.strip_prefix("pantile> ").or(line.strip_prefix("pantile*> ")) else {
            continue;
        };
        let star = if shell.is_in_transaction() { "*" } else { "" };
        let printed = home::run(&mut shell, command).unwrap_or_else(|error| format!("{error}\n"));
        replayed += &format!("pantile{star}> {command}\n{printed}");
    }
    if session() != replayed {
        println!("{replayed}");
    }
    assert!(replayed.lines().count() > 50);
    assert_eq!(session(), replayed);
}
