//! `segno member …`: members of batches.

use segno_api::Client;
use segno_api::batch::BatchAction;

use super::arguments::{MemberVerb, Members, OneMember};
use super::batch::{member_of_key, member_state, request, step_error, step_state};
use crate::exit::Failure;
use crate::output::{Output, Rows, Table};

/// Does what was asked.
pub async fn run(arguments: Members, output: &Output) -> Result<(), Failure> {
    let client = &arguments.connection.client(output)?;
    let (of, action): (_, fn(u64) -> BatchAction) = match arguments.verb {
        MemberVerb::Show(of) => return show(client, &of, output).await,
        MemberVerb::Retry { member: of, origin } => {
            let batch_member_ids = Some(vec![id_of(client, &of).await?]);
            let action = BatchAction::RetryMembers { batch_member_ids, from: origin.retry_from() };
            return request(client, of.batch, &action, output).await;
        }
        MemberVerb::Cancel(of) => (of, |batch_member_id| BatchAction::CancelMember { batch_member_id }),
        MemberVerb::Resume(of) => (of, |batch_member_id| BatchAction::ResumeMember { batch_member_id }),
        MemberVerb::RetryRemoval(of) => (of, |batch_member_id| BatchAction::RetryRemoval { batch_member_id }),
    };
    request(client, of.batch, &action(id_of(client, &of).await?), output).await
}

/// The id of a member that is given by its id, or by a key that is no whole number.
async fn id_of(client: &Client, of: &OneMember) -> Result<u64, Failure> {
    match of.member.parse() {
        Ok(id) => Ok(id),
        Err(_) => Ok(member_of_key(client, of.batch, &of.member).await?.id),
    }
}

async fn show(client: &Client, of: &OneMember, output: &Output) -> Result<(), Failure> {
    let details = client.batch_member(of.batch, id_of(client, of).await?).await?;
    let member = &details.member;
    let mut table = Table::default()
        .line("member", &member.member_key)
        .line("id", member.id.to_string())
        .line("batch", member.batch_id.to_string())
        .line("state", member_state(member))
        .line("added", output.time(member.added_at));
    if let Some(removed_at) = member.removed_at {
        table = table.line("removed", output.time(removed_at));
    }
    if let Some(removal) = &member.removal_state {
        table = table.line("removal steps", removal);
    }
    if let Some(error) = &member.removal_error {
        table = table.line("removal error", error);
    }
    for (name, value) in member.data.iter().chain(&member.worker_data) {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        table = table.line(name, text);
    }
    let mut rows = Rows::new(["step", "id", "function", "parameters", "retries", "polls", "state", "error"]);
    for step in &details.steps {
        rows.add([
            step.step_name.clone(),
            step.id.to_string(),
            step.function_name.clone(),
            step.params_json.clone(),
            step.retry_count.to_string(),
            step.poll_count.to_string(),
            step_state(step),
            step_error(step),
        ]);
    }
    let mut text = table.to_text(output.colours);
    if !details.steps.is_empty() {
        text.push('\n');
        text.push_str(&rows.to_text(output.colours));
    }
    output.text(&details, &text)
}
