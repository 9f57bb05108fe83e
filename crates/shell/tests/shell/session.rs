//! The sessions in docs/shell.md and in the guide's picture.

use pantile_shell::Shell;

use crate::home;

/// The session, without the commands of the system above it.
fn session() -> &'static str {
    let text = include_str!("../../../../docs/shell.md");
    let (_, from) = text.split_once("```text\n").expect("a session");
    from.split_once("```").expect("its end").0
}

/// Runs the commands of lines that begin with a prompt. Returns each with what it prints.
fn replay(lines: &str, shell: &mut Shell<'_>) -> String {
    let mut replayed = String::new();
    for line in lines.lines() {
        let Some(command) = line.strip_prefix("pantile> ").or(line.strip_prefix("pantile*> ")) else {
            continue;
        };
        let star = if shell.is_in_transaction() { "*" } else { "" };
        let printed = home::run(shell, command).unwrap_or_else(|error| format!("{error}\n"));
        replayed += &format!("pantile{star}> {command}\n{printed}");
    }
    replayed
}

#[test]
fn the_session_of_the_manual_goes_as_printed() {
    let db = home::new();
    let mut shell = Shell::new(&db, &home::GO_ON);
    let replayed = replay(session(), &mut shell);
    if session() != replayed {
        println!("{replayed}");
    }
    assert!(replayed.lines().count() > 50);
    assert_eq!(session(), replayed);
}

/// The lines of the guide's picture of a session, as text.
fn picture() -> String {
    let picture = include_str!("../../../../docs/guide/shell.svg");
    // Spaces at the beginning of a line are drawn by where it begins.
    let line = |line: &str| {
        let (x, rest) = line.strip_prefix("<text x=\"")?.split_once('"')?;
        let (_, text) = rest.strip_suffix("</text>")?.split_once("preserve\">")?;
        let spaces = ((x.parse::<f64>().ok()? - 12.0) / 8.4).round() as usize;
        Some(format!("{}{text}\n", " ".repeat(spaces)))
    };
    let text: String = picture.lines().filter_map(line).collect();
    [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&amp;", "&")]
        .iter()
        .fold(text, |text, (entity, character)| text.replace(entity, character))
}

/// What changes from one run to the next: how old a transaction is and where it runs, and how blocks are filled.
fn settled(session: &str) -> String {
    let (before, rest) = session.split_once("pantile*> transactions\n").expect("the command");
    let (_, rest) = rest.split_once("pantile*> rollback\n").expect("the command");
    let (middle, space) = rest.split_once("pantile> explain space\n").expect("the command");
    let head = space.lines().next().expect("the head of the table");
    format!("{before}{middle}{head}\n")
}

#[test]
fn the_session_in_the_guides_picture_goes_as_drawn() {
    let db = home::new();
    let mut shell = Shell::new(&db, &home::GO_ON);
    let columns = r#"[{"name":"id","type":"u32"},{"name":"customer","type":"u32"},{"name":"price","type":"decimal(9,2)"},{"name":"note","type":"string(40)","nullable":true}]"#;
    let table = format!(r#"create table {{"table":"orders","columns":{columns},"primary_key":["id"]}}"#);
    home::run(&mut shell, &table).expect("a table");
    let picture = picture();
    let (first, session) = picture.split_once('\n').expect("lines");
    assert_eq!(first, ".help lists the commands; Ctrl-D ends the shell");
    let replayed = replay(session, &mut shell);
    assert_eq!(settled(session), settled(&replayed));
}
