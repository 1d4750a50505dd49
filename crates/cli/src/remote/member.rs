//! `segno member …`: members of batches.

use segno_api::batch::StepStatus;

use super::arguments::{MemberVerb, Members};
use super::batch::member_state;
use crate::exit::Failure;
use crate::output::{Output, Rows, Table};

/// Does what was asked.
pub async fn run(arguments: Members, output: &Output) -> Result<(), Failure> {
    let client = arguments.connection.client(output)?;
    let MemberVerb::Show { batch, member } = arguments.verb;
    let details = client.batch_member(batch, member).await?;
    let member = &details.member;
    let mut table = Table::default()
        .line("member", &member.member_key)
        .line("id", member.id.to_string())
        .line("batch", member.batch_id.to_string())
        .line("state", member_state(member.status))
        .line("added", output.time(member.added_at));
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
            step_state(step.status).to_owned(),
            step.error_message.clone().unwrap_or_default(),
        ]);
    }
    let mut text = table.to_text(output.colours);
    if !details.steps.is_empty() {
        text.push('\n');
        text.push_str(&rows.to_text(output.colours));
    }
    output.text(&details, &text)
}

fn step_state(status: StepStatus) -> &'static str {
    match status {
        StepStatus::Pending => "pending",
        StepStatus::Dispatched => "running",
        StepStatus::Succeeded => "succeeded",
        StepStatus::Failed => "failed",
        StepStatus::Polling => "polling",
        StepStatus::PollTimeout => "poll timed out",
        StepStatus::RolledBack => "rolled back",
        StepStatus::Cancelled => "cancelled",
        StepStatus::Skipped => "skipped",
    }
}
