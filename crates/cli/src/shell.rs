//! `pantile shell`: commands for a database, typed or from a script.

use std::env;
use std::io::{self, BufRead, BufWriter, Cursor, IsTerminal, Read, stdin, stdout};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

use clap::{Args, ValueEnum};
use pantile::{Database, Error, Options};
use pantile_shell::{Flow, Mode, Shell, interact};

use crate::exit::Failure;
use crate::output;

/// Examples that `--help` shows.
pub const EXAMPLES: &str =
    "Exit status: 0 if every command succeeded, 1 if not; a script ends at the first that fails.

Examples:
  pantile shell /data/shop
  pantile shell /data/shop -c tables -c 'count orders'
  pantile shell /data/shop --mode csv -c 'scan orders by by_note prefix urgent limit 10'
  pantile shell /data/shop --read-only -c 'explain space'
  pantile shell /data/shop < script.txt";

/// Bytes of a script that are read at once, at most.
const PIECE: usize = 64 << 10;

/// Settings of a shell.
#[derive(Args, Debug)]
pub struct ShellArgs {
    /// Directory of the database.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Run this command and end; can be given several times [default: read commands from stdin].
    #[arg(short, long = "command", value_name = "COMMAND")]
    commands: Vec<String>,
    /// How rows are printed.
    #[arg(long, value_enum, default_value = "table")]
    mode: ModeArg,
    /// Change nothing; the database may be open in another process, which goes on.
    #[arg(long, conflicts_with = "create")]
    read_only: bool,
    /// Make a new database if there is none.
    #[arg(long)]
    create: bool,
}

impl ShellArgs {
    /// Whether commands are typed on a terminal.
    pub fn is_typed(&self) -> bool {
        self.commands.is_empty() && stdin().is_terminal()
    }
}

/// How rows are printed.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ModeArg {
    /// Columns below each other.
    Table,
    /// CSV, with the names of the columns in the first row.
    Csv,
    /// A JSON object in each line.
    Jsonl,
}

impl From<ModeArg> for Mode {
    fn from(mode: ModeArg) -> Self {
        match mode {
            ModeArg::Table => Mode::Table,
            ModeArg::Csv => Mode::Csv,
            ModeArg::Jsonl => Mode::JsonLines,
        }
    }
}

/// Runs `pantile shell`.
pub fn run(args: &ShellArgs, stop: &AtomicBool) -> Result<(), Failure> {
    let db = open(args)?;
    let mut shell = Shell::new(&db, stop);
    shell.set_mode(args.mode.into());
    let done = commands(args, &mut shell, stop);
    let is_open = shell.is_in_transaction();
    drop(shell);
    db.close()?;
    let rolled_back = if is_open { "; the transaction that was open is rolled back" } else { "" };
    match done {
        Err(Ended { error, are_left }) if error.is_broken_pipe() => match (are_left, is_open) {
            // It has seen enough.
            (false, false) => Ok(()),
            (true, _) => Err(Failure::failed(format!(
                "the reader of the results has left, and commands that follow may not have run{rolled_back}"
            ))),
            (false, true) => Err(Failure::failed(format!("the reader of the results has left{rolled_back}"))),
        },
        Err(Ended { error, .. }) => Err(Failure::failed(format!("{error}{rolled_back}"))),
        Ok(()) if is_open => Err(Failure::failed(
            "a transaction was left open and is rolled back; `commit` would have kept it",
        )),
        Ok(()) => Ok(()),
    }
}

fn open(args: &ShellArgs) -> Result<Database, Failure> {
    if args.read_only {
        let db = Database::open_read_only(&args.dir)?;
        if !db.is_current() {
            output::note(
                "A transaction was writing when this began. What others have committed beside it is not shown: start again \
                 when it has ended.",
            );
        }
        return Ok(db);
    }
    Options::new().create(args.create).open(&args.dir).map_err(|error| match error {
        Error::AlreadyOpen { .. } => Failure::failed(format!("{error}, or read beside it with --read-only")),
        Error::NoDatabase(_) => Failure::failed(format!("{error}; --create makes one")),
        error => error.into(),
    })
}

/// Why the commands ended early.
struct Ended {
    error: pantile_shell::Error,
    /// Whether there are commands that did not run, where that matters: the reader of the results has left.
    are_left: bool,
}

fn commands(args: &ShellArgs, shell: &mut Shell<'_>, stop: &AtomicBool) -> Result<(), Ended> {
    if args.is_typed() {
        output::note(".help lists the commands; Ctrl-D ends the shell");
        return interact(shell, history().as_deref()).map_err(|error| Ended { error, are_left: false });
    }
    let mut out = BufWriter::new(stdout().lock());
    if args.commands.is_empty() {
        let mut input = Input::new(stop);
        return shell.script("stdin", &mut input, &mut out).map(drop).map_err(|error| {
            let are_left = error.is_broken_pipe() && (is_of_inner_script(&error) || input.has_commands());
            Ended { error, are_left }
        });
    }
    for (n, command) in (1..).zip(&args.commands) {
        match shell.run(command, &mut out) {
            Ok(Flow::Continue) => {}
            Ok(Flow::Quit) => break,
            Err(error) => {
                let are_left =
                    n < args.commands.len() || matches!(error, pantile_shell::Error::Script { .. });
                return Err(Ended { error, are_left });
            }
        }
    }
    Ok(())
}

/// Whether it comes from a script that this one runs, and that may go on.
fn is_of_inner_script(error: &pantile_shell::Error) -> bool {
    matches!(error, pantile_shell::Error::Script { cause, .. } if matches!(**cause, pantile_shell::Error::Script { .. }))
}

/// Where lines that were typed are kept: `PANTILE_HISTORY`, nowhere if that is empty.
fn history() -> Option<PathBuf> {
    match env::var_os("PANTILE_HISTORY") {
        Some(file) => Some(file.into()).filter(|file: &PathBuf| !file.as_os_str().is_empty()),
        None => env::home_dir().map(|home| home.join(".pantile_history")),
    }
}

/// What the shell waits for while no command runs.
enum Fed {
    Bytes(io::Result<Vec<u8>>),
    Stopped,
}

static FEED: Mutex<Option<Sender<Fed>>> = Mutex::new(None);

/// Ends the input of a script that comes from a pipe, for it waits for nothing else.
pub fn stop_input() {
    if let Ok(feed) = FEED.lock()
        && let Some(feed) = &*feed
    {
        // It may have ended.
        let _ = feed.send(Fed::Stopped);
    }
}

/// The commands of a script, read by a thread of its own so that waiting for them can end.
struct Input {
    fed: Receiver<Fed>,
    asks: SyncSender<()>,
    bytes: Cursor<Vec<u8>>,
}

impl Input {
    fn new(stop: &AtomicBool) -> Self {
        let (feed, fed) = channel();
        // It reads when it is asked to, so that a long script is not read as a whole.
        let (asks, asked) = sync_channel(1);
        if let Ok(mut kept) = FEED.lock() {
            *kept = Some(feed.clone());
        }
        // A signal may have come while the database was opened.
        if stop.load(Ordering::SeqCst) {
            stop_input();
        }
        thread::spawn(move || {
            let mut piece = vec![0; PIECE];
            while let Ok(()) = asked.recv() {
                let read = stdin().lock().read(&mut piece).map(|len| piece[..len].to_vec());
                if feed.send(Fed::Bytes(read)).is_err() {
                    return;
                }
            }
        });
        Self { fed, asks, bytes: Cursor::default() }
    }

    /// Whether the script has commands that were not read, as far as it is there: a program that writes it may wait for
    /// results.
    fn has_commands(&self) -> bool {
        let rest = self.bytes.get_ref().get(self.bytes.position() as usize..).unwrap_or_default();
        let text = String::from_utf8_lossy(rest);
        let is_command = |line: &str| !line.is_empty() && !line.starts_with('#');
        let first = text.lines().map(str::trim).find(|line| is_command(line));
        let ends = |line: &str| [".quit", ".exit"].iter().any(|verb| line.eq_ignore_ascii_case(verb));
        first.is_some_and(|line| !ends(line))
    }
}

impl Read for Input {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let len = self.fill_buf()?.read(out)?;
        self.consume(len);
        Ok(len)
    }
}

impl BufRead for Input {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.bytes.fill_buf()?.is_empty() {
            let ended = || io::Error::other("interrupted");
            self.asks.send(()).map_err(|_| ended())?;
            self.bytes = match self.fed.recv() {
                Ok(Fed::Bytes(read)) => Cursor::new(read?),
                Ok(Fed::Stopped) | Err(_) => return Err(ended()),
            };
        }
        self.bytes.fill_buf()
    }

    fn consume(&mut self, len: usize) {
        self.bytes.consume(len);
    }
}
