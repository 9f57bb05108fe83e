//! SQL queries over a database that may be open in another process, from the command line, a script or a terminal.

mod output;
mod statements;

use std::io::{IsTerminal, stdin};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use datafusion::error::{DataFusionError, Result};
use pantile::Database;
use pantile_datafusion::Sql;
use tokio::runtime::Runtime;

use crate::output::Mode;
use crate::statements::{Ended, Statement, ended_by, from_lines, from_terminal};

const EXAMPLES: &str = "A statement ends with a line that ends with a semicolon. It reads and changes nothing.
All statements read the state of the database when the program began; `.refresh` on a terminal takes the newest.

Exit status: 0 if every statement succeeded, 1 if not (a script ends at the first that fails), 2 for a wrong command line.

Examples:
  pantile-sql /data/shop
  pantile-sql /data/shop -c 'SELECT customer, sum(cents) FROM orders GROUP BY customer'
  pantile-sql /data/shop --mode csv -c 'SELECT * FROM orders' > orders.csv
  pantile-sql /data/shop -c 'SHOW TABLES' -c 'DESCRIBE orders'
  pantile-sql /data/shop -c 'EXPLAIN SELECT * FROM orders WHERE id = 7'
  pantile-sql /data/shop < queries.sql";

/// Reads a database of Pantile by SQL; another process may have it open and write.
#[derive(Parser, Debug)]
#[command(name = "pantile-sql", version, after_help = EXAMPLES)]
struct Arguments {
    /// Directory of the database.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Run this statement and end; can be given several times [default: read statements from stdin].
    #[arg(short, long = "command", value_name = "SQL")]
    commands: Vec<String>,
    /// How rows are printed.
    #[arg(long, value_enum, default_value = "table")]
    mode: Mode,
    /// Memory in MiB for sorting, grouping and joining; beyond it, temporary files are used where that is possible.
    #[arg(long, value_name = "MIB", default_value = "1024", value_parser = clap::value_parser!(u32).range(1..))]
    memory: u32,
}

/// What the statements of a run have in common.
struct Session {
    arguments: Arguments,
    runtime: Runtime,
    sql: Sql,
}

impl Session {
    fn begin(arguments: Arguments) -> Result<Self> {
        let sql = open(&arguments.dir, arguments.memory)?;
        Ok(Self { runtime: Runtime::new()?, arguments, sql })
    }

    fn run(&self, statement: &str) -> Result<()> {
        let query = async { output::print(self.sql.query(statement).await?, self.arguments.mode).await };
        self.runtime.block_on(query)
    }

    fn refresh(&mut self) -> Result<()> {
        self.sql = open(&self.arguments.dir, self.arguments.memory)?;
        Ok(())
    }
}

fn open(dir: &Path, memory: u32) -> Result<Sql> {
    let db = Database::open_read_only(dir).map_err(|error| DataFusionError::External(Box::new(error)))?;
    Sql::new(&db).memory_limit((memory as usize) << 20)
}

fn all(session: &mut Session) -> Result<Ended> {
    if !session.arguments.commands.is_empty() {
        let of_command = |command: &String| {
            let mut statement = Statement::default();
            let whole = statement.add(command);
            // The last one needs no semicolon.
            whole.into_iter().chain(statement.rest())
        };
        let mut statements = session.arguments.commands.iter().flat_map(of_command);
        while let Some(one) = statements.next() {
            if let Err(error) = session.run(&one) {
                return ended_by(error, || statements.next().is_some());
            }
        }
        return Ok(Ended::Whole);
    }
    if stdin().is_terminal() { from_terminal(session) } else { from_lines(session, stdin().lock()) }
}

fn main() -> ExitCode {
    let ended = Session::begin(Arguments::parse()).and_then(|mut session| all(&mut session));
    match ended {
        Ok(Ended::Whole) => ExitCode::SUCCESS,
        // Whoever reads it has enough.
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Ok(Ended::Unread) => {
            eprintln!("pantile-sql: nobody reads the output any more; not all statements were run");
            ExitCode::FAILURE
        }
        Ok(Ended::InStatement) => {
            eprintln!("pantile-sql: the last statement has no semicolon at its end; it was not run");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("pantile-sql: {}", output::message(&error));
            ExitCode::FAILURE
        }
    }
}
