//! The service: what it is called with, and what it does.

mod client;
mod machine;
mod node;
mod peers;
mod wire;

use std::collections::BTreeMap;

use openraft::BasicNode;

pub use client::Client;
#[allow(unused_imports, reason = "its test names it")]
pub use wire::Status;

/// Whatever ends a command.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

const USAGE: &str = "usage:
    start ID ADDRESS DIRECTORY [ENTRIES]  starts a node, which makes a snapshot each so many entries (5000)
    init ADDRESS...                       makes a cluster of nodes 1, 2 and so on, which have been started
    put ADDRESS KEY VALUE                 returns when it is durable on most nodes
    get ADDRESS KEY                       reads what was put last
    local ADDRESS KEY                     reads what this node has, which may be older
    status ADDRESS                        shows how far a node is";

/// Runs a command.
///
/// # Errors
/// If the command fails, or there is none of its name.
pub fn run(arguments: &[String]) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(command(&arguments.iter().map(String::as_str).collect::<Vec<_>>()))
}

async fn command(arguments: &[&str]) -> Result<(), Failure> {
    match arguments {
        ["start", id, address, directory] => node::run(id.parse()?, address, directory, 5000).await?,
        ["start", id, address, directory, entries] => {
            node::run(id.parse()?, address, directory, entries.parse()?).await?;
        }
        ["init", addresses @ ..] if !addresses.is_empty() => {
            let nodes = (1..).zip(addresses).map(|(id, address)| (id, BasicNode::new(address)));
            Client::new(addresses).init(nodes.collect::<BTreeMap<_, _>>()).await?;
        }
        ["put", address, key, value] => {
            let before = Client::new(&[address]).put(key, value).await?;
            println!("{}", before.map_or("new".to_owned(), |before| format!("was {before}")));
        }
        ["get", address, key] => show(Client::new(&[address]).get(key).await?),
        ["local", address, key] => show(Client::new(&[address]).local(key).await?),
        ["status", address] => println!("{:#?}", Client::new(&[address]).status().await?),
        _ => return Err(USAGE.into()),
    }
    Ok(())
}

fn show(value: Option<String>) {
    println!("{}", value.as_deref().unwrap_or("nothing"));
}
