//! Verbs that tell an instance something: signal, enqueue, cancel, pause, resume, restart, delete.

use segno_api::instance::{Accepted, Restart as RestartRequest, Send as Message};

use super::arguments::{Because, Delete, One, Restart, Send};
use super::start::json;
use crate::exit::Failure;
use crate::output::{Output, Table, count};

fn accepted(output: &Output, answer: &Accepted, what: &str) -> Result<(), Failure> {
    output.print(answer, Table::default().line(&answer.id, what))
}

fn message(arguments: &Send) -> Result<Message, Failure> {
    let data = json("--data", &arguments.data)?;
    Ok(Message { name: arguments.name.clone(), data, id: arguments.message_id.clone() })
}

/// Raises a signal.
pub async fn signal(arguments: Send, output: &Output) -> Result<(), Failure> {
    let answer = arguments.connection.client(output)?.raise(&arguments.id, &message(&arguments)?).await?;
    accepted(output, &answer, "signal sent")
}

/// Puts a message into a mailbox.
pub async fn enqueue(arguments: Send, output: &Output) -> Result<(), Failure> {
    let answer = arguments.connection.client(output)?.enqueue(&arguments.id, &message(&arguments)?).await?;
    accepted(output, &answer, "message sent")
}

/// Cancels.
pub async fn cancel(arguments: Because, output: &Output) -> Result<(), Failure> {
    let answer = arguments.connection.client(output)?.cancel(&arguments.id, arguments.reason).await?;
    accepted(output, &answer, "will be cancelled")
}

/// Pauses.
pub async fn pause(arguments: Because, output: &Output) -> Result<(), Failure> {
    let answer = arguments.connection.client(output)?.pause(&arguments.id, arguments.reason).await?;
    accepted(output, &answer, "will be paused")
}

/// Resumes.
pub async fn resume(arguments: One, output: &Output) -> Result<(), Failure> {
    let answer = arguments.connection.client(output)?.resume(&arguments.id).await?;
    accepted(output, &answer, "will be resumed")
}

/// Starts again.
pub async fn restart(arguments: Restart, output: &Output) -> Result<(), Failure> {
    let Restart { force, new_id, reason, .. } = arguments;
    let input = arguments.input.as_deref().map(|input| json("--input", input)).transpose()?;
    let request = RestartRequest { force, new_id, input, reason };
    let answer = arguments.connection.client(output)?.restart(&arguments.id, &request).await?;
    output.print(&answer, Table::default().line(&answer.id, "started again"))
}

/// Makes the next attempts of an instance at once.
pub async fn retry(arguments: Because, output: &Output) -> Result<(), Failure> {
    let answer = arguments.connection.client(output)?.retry(&arguments.id, arguments.reason).await?;
    let what = match answer.activities {
        1 => "1 activity is retried now".to_owned(),
        many => format!("{} activities are retried now", count(many)),
    };
    output.print(&answer, Table::default().line(&answer.id, what))
}

/// Deletes.
pub async fn delete(arguments: Delete, output: &Output) -> Result<(), Failure> {
    let answer = arguments.connection.client(output)?.delete(&arguments.id, arguments.force).await?;
    let table = Table::default()
        .line("instances deleted", count(answer.instances))
        .line("events deleted", count(answer.events))
        .line("queued messages deleted", count(answer.queued_messages));
    output.print(&answer, table)
}
