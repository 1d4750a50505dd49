//! `segno bus …`: the message bus of runbooks that is built in.

use clap::{Args, Subcommand};
use segno::ids::{IdSource as _, SystemIds};
use segno_api::Client;
use segno_api::bus::{BusMessage, BusMessageState, BusSubscription, SendMessages};
use segno_server::HumanDuration;

use super::connection::Connection;
use super::history::shortened;
use super::start::{json, pairs};
use crate::exit::Failure;
use crate::moment::{self, Moment, future_help};
use crate::output::{Output, Page, Paging, Rows, Table, duration};

/// Property that names the kind of a message of runbooks.
const MESSAGE_TYPE: &str = "MessageType";

/// What to do with the bus.
#[derive(Debug, Args)]
pub struct BusArguments {
    /// What to do.
    #[command(subcommand)]
    pub verb: BusVerb,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// A subscription of a topic.
#[derive(Debug, Args)]
pub struct OfSubscription {
    /// The topic: `orchestrator-events`, `jobs` or `results`.
    pub topic: String,
    /// The subscription: `orchestrator`, or for jobs the pool.
    pub subscription: String,
}

impl OfSubscription {
    fn name(&self) -> (&str, &str) {
        (&self.topic, &self.subscription)
    }
}

/// What to do with the bus.
#[derive(Debug, Subcommand)]
pub enum BusVerb {
    /// List subscriptions with their oldest message and dead letter.
    #[command(after_help = "Example:\n  segno bus list")]
    List {
        /// How many.
        #[command(flatten)]
        paging: Paging,
    },
    /// Show a subscription, and how it delivers.
    #[command(after_help = "Example:\n  segno bus show jobs cloud-01")]
    Show {
        /// Which subscription.
        #[command(flatten)]
        of: OfSubscription,
    },
    /// List the messages of a subscription, oldest first, without locking them.
    #[command(after_help = "Example:\n  segno bus peek results orchestrator -o json")]
    Peek {
        /// Which subscription.
        #[command(flatten)]
        of: OfSubscription,
        /// How many.
        #[command(flatten)]
        paging: Paging,
    },
    /// Send a message to a topic.
    #[command(after_help = "Example:\n  segno bus send orchestrator-events --data @member-removed.json")]
    Send(SendArguments),
    /// List the dead letters of a subscription, oldest first.
    #[command(
        name = "dead-letters",
        after_help = "Example:\n  segno bus dead-letters orchestrator-events orchestrator"
    )]
    DeadLetters {
        /// Which subscription.
        #[command(flatten)]
        of: OfSubscription,
        /// How many.
        #[command(flatten)]
        paging: Paging,
    },
    /// Send a dead letter to its subscription again, once.
    #[command(after_help = "Example:\n  segno bus resubmit results orchestrator ID")]
    Resubmit {
        /// Which subscription.
        #[command(flatten)]
        of: OfSubscription,
        /// Id of the dead letter.
        id: String,
    },
    /// Delete a dead letter.
    #[command(after_help = "Example:\n  segno bus discard results orchestrator ID")]
    Discard {
        /// Which subscription.
        #[command(flatten)]
        of: OfSubscription,
        /// Id of the dead letter.
        id: String,
    },
}

/// A message to send.
#[derive(Debug, Args)]
pub struct SendArguments {
    /// The topic.
    pub topic: String,
    /// The body, JSON; `@FILE` reads a file and `-` standard input.
    #[arg(long)]
    pub data: String,
    /// Id of the message; repeats of it within 10 minutes are dropped. A new one by default.
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// A property, by which subscriptions filter.
    #[arg(long = "property", value_name = "KEY=VALUE")]
    pub properties: Vec<String>,
    /// Kind of the message, as the property `MessageType`.
    #[arg(long = "type", value_name = "TYPE")]
    pub message_type: Option<String>,
    #[arg(long, value_name = "TIME", value_parser = moment::future, help = future_help!("Not delivered before this time"))]
    pub at: Option<Moment>,
    /// How long the message is delivered, such as `1h`; 14 days by default.
    #[arg(long, value_name = "DURATION")]
    pub time_to_live: Option<HumanDuration>,
}

/// Does what was asked.
pub async fn run(arguments: BusArguments, output: &Output) -> Result<(), Failure> {
    let client = arguments.connection.client(output)?;
    match arguments.verb {
        BusVerb::List { paging } => list(&client, &paging, output).await,
        BusVerb::Show { of } => {
            let shown = client.bus_subscription(of.name()).await?;
            output.print(&shown, table(&shown, output))
        }
        BusVerb::Peek { of, paging } => peek(&client, &of, &paging, output).await,
        BusVerb::Send(arguments) => send(&client, arguments, output).await,
        BusVerb::DeadLetters { of, paging } => dead_letters(&client, &of, &paging, output).await,
        BusVerb::Resubmit { of, id } => {
            client.resubmit_message(of.name(), &id).await?;
            let done = serde_json::json!({ "resubmitted": id });
            output.print(&done, Table::default().line(&id, "sent again"))
        }
        BusVerb::Discard { of, id } => {
            client.discard_message(of.name(), &id).await?;
            let done = serde_json::json!({ "discarded": id });
            output.print(&done, Table::default().line(&id, "discarded"))
        }
    }
}

async fn list(client: &Client, paging: &Paging, output: &Output) -> Result<(), Failure> {
    let page = paging.gather(|request| async move {
        let page = client.bus_subscriptions(request).await?;
        Ok(Page::of(page.subscriptions, page.unreadable, page.next_cursor))
    });
    let page = page.await?;
    let mut rows = Rows::new(["topic", "subscription", "filter", "oldest message", "oldest dead letter"]);
    for one in &page.items {
        rows.add([
            one.topic.clone(),
            one.subscription.clone(),
            filter(one),
            output.time_or_none(one.oldest_enqueued_at),
            output.time_or_none(one.oldest_dead_at),
        ]);
    }
    output.list(&page, &rows)
}

async fn peek(client: &Client, of: &OfSubscription, paging: &Paging, output: &Output) -> Result<(), Failure> {
    let page = paging.gather(|request| async move {
        let page = client.bus_messages(of.name(), request).await?;
        Ok(Page::of(page.messages, page.unreadable, page.next_cursor))
    });
    let page = page.await?;
    let mut rows = Rows::new(["message", "state", "sent", "receivable from", "deliveries", "body"]);
    for one in &page.items {
        let state = match one.state {
            BusMessageState::Waiting => "waiting",
            BusMessageState::Scheduled => "scheduled",
            BusMessageState::Locked => "locked",
        };
        rows.add([
            one.message.message_id.clone(),
            state.to_owned(),
            output.time(one.enqueued_at),
            output.time(one.visible_at),
            one.delivery_count.to_string(),
            shortened(&one.message.body),
        ]);
    }
    output.list(&page, &rows)
}

async fn send(client: &Client, arguments: SendArguments, output: &Output) -> Result<(), Failure> {
    let id = arguments.id.unwrap_or_else(|| SystemIds.new_uuid().to_string());
    let mut message = BusMessage::json(id, json("--data", &arguments.data)?.text());
    message.properties = pairs("--property", &arguments.properties)?;
    message.properties.extend(arguments.message_type.map(|kind| (MESSAGE_TYPE.to_owned(), kind)));
    message.scheduled_at = output.optional_moment(arguments.at)?;
    message.time_to_live_ms = arguments.time_to_live.map(HumanDuration::as_ms);
    let sent = serde_json::json!({ "topic": arguments.topic, "message_id": message.message_id });
    let shown = Table::default().line(&message.message_id, format!("sent to {}", arguments.topic));
    client.send_messages(&arguments.topic, &SendMessages { messages: vec![message] }).await?;
    output.print(&sent, shown)
}

async fn dead_letters(
    client: &Client,
    of: &OfSubscription,
    paging: &Paging,
    output: &Output,
) -> Result<(), Failure> {
    let page = paging.gather(|request| async move {
        let page = client.bus_dead_letters(of.name(), request).await?;
        Ok(Page::of(page.dead_letters, page.unreadable, page.next_cursor))
    });
    let page = page.await?;
    let mut rows = Rows::new(["id", "message", "dead", "deliveries", "reason", "description"]);
    for letter in &page.items {
        rows.add([
            letter.id.clone(),
            letter.message.message_id.clone(),
            output.time(letter.dead_at),
            letter.delivery_count.to_string(),
            letter.reason.clone(),
            shortened(&letter.description),
        ]);
    }
    output.list(&page, &rows)
}

fn table(shown: &BusSubscription, output: &Output) -> Table {
    let span = |ms: u64| duration(i64::try_from(ms).unwrap_or(i64::MAX));
    Table::default()
        .line("topic", &shown.topic)
        .line("subscription", &shown.subscription)
        .line("filter", filter(shown))
        .line("lock", span(shown.lock_ms))
        .line("deliveries", format!("{} at most", shown.max_deliveries))
        .line("time to live", span(shown.time_to_live_ms))
        .line("oldest message", output.time_or_none(shown.oldest_enqueued_at))
        .line("oldest dead letter", output.time_or_none(shown.oldest_dead_at))
}

/// Which messages it gets.
fn filter(shown: &BusSubscription) -> String {
    let wanted = shown.filter.iter().map(|(name, value)| format!("{name} = {value}"));
    let unwanted = shown.except.iter().map(|(name, value)| format!("{name} ≠ {value}"));
    let all: Vec<String> = wanted.chain(unwanted).collect();
    if all.is_empty() { "all messages".to_owned() } else { all.join(", ") }
}
