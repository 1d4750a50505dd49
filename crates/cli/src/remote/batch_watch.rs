//! `segno batch watch`: follows a batch until it ends, by live events; through restarts of the server.

use std::fmt::Write as _;
use std::io::{IsTerminal, stdout};
use std::time::Duration;

use jiff::Timestamp;
use segno::clock::{self, Clock as _, SystemClock};
use segno_api::batch::{BatchDetails, BatchStatus, MemberDetails};
use segno_api::change::{BatchChange, FollowChanges};
use segno_api::client::{PageRequest, StreamEvent};
use segno_api::{Client, ClientError};

use super::batch::{changed_rows, phase_state, state};
use super::batch_matrix::{Estimate, LEGEND, Matrix, Progress, estimate, has_ended, progress};
use super::following::{Following, Source};
use crate::exit::Failure;
use crate::output::{Output, count, counted, duration};

/// Between two looks at the counters, on a terminal: events come as often as commits do.
const REDRAW_EVERY: Duration = Duration::from_millis(500);

/// Between two looks elsewhere. Events tell more; a look finds an end that no event told of.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// How a batch is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Display {
    /// Redrawn on a terminal.
    Screen,
    /// A line for each change.
    Lines,
}

struct Watch<'a> {
    client: Client,
    output: &'a Output,
    display: Display,
    /// Most members that are shown.
    limit: usize,
    details: BatchDetails,
    /// When watching began, and how far the batch was.
    begun: (Timestamp, Progress),
    matrix: Matrix,
    /// Whether the matrix has to be read again.
    is_stale: bool,
    /// Why the numbers are old.
    silent: Option<String>,
}

/// Follows a batch until it ends.
pub async fn run(client: &Client, batch: u64, limit: usize, output: &Output) -> Result<(), Failure> {
    let details = client.batch(batch).await?;
    let is_screen = !output.format.is_for_programs() && stdout().is_terminal();
    let filter = FollowChanges { batch: Some(batch), ..FollowChanges::default() };
    let mut following = Following::begin(client.clone(), Source::All(filter)).await?;
    let mut watch = Watch {
        // A server that answered before may restart, however long that takes: each look is one try.
        client: client.clone().retry_for(Duration::ZERO),
        output,
        display: if is_screen { Display::Screen } else { Display::Lines },
        limit,
        begun: (now(), progress(&details)),
        details,
        matrix: Matrix::default(),
        is_stale: true,
        silent: None,
    };
    let every = if is_screen { REDRAW_EVERY } else { LOOK_EVERY };
    let mut look_at_ms = 0;
    loop {
        let mut next = Box::pin(following.next(output));
        let event = loop {
            let wait_ms = u64::saturating_sub(look_at_ms, SystemClock.now_ms());
            if wait_ms == 0 {
                watch.look().await?;
                if has_ended(watch.details.batch.status) {
                    return watch.outcome();
                }
                look_at_ms = SystemClock.now_ms() + clock::duration_ms(every);
                continue;
            }
            tokio::select! {
                event = &mut next => break event?,
                () = clock::sleep(&SystemClock, Duration::from_millis(wait_ms)) => {}
            }
        };
        drop(next);
        if watch.take(&event)? {
            look_at_ms = 0;
        }
    }
}

impl Watch<'_> {
    /// Takes an event. Returns whether the batch has to be looked at now.
    fn take(&mut self, event: &StreamEvent) -> Result<bool, Failure> {
        match event.name.as_str() {
            "batch" => {}
            // What was before has to be read: the beginning, or what is missing.
            "listening" | "lagged" => {
                self.is_stale = true;
                return Ok(true);
            }
            _ => return Ok(false),
        }
        let Ok(change) = serde_json::from_str::<BatchChange>(&event.data) else { return Ok(false) };
        if self.display == Display::Lines {
            self.output.item(&event.data, || {
                format!("{}  {}\n", self.output.exact_time(change.at), changed_rows(&change))
            })?;
        }
        self.is_stale |= !change.left_out.is_empty();
        for row in &change.rows {
            self.is_stale |= !self.matrix.apply(row);
        }
        Ok(has_ended(change.status))
    }

    /// Reads the batch, and the members that are shown if they have to be, and draws them.
    async fn look(&mut self) -> Result<(), Failure> {
        let read = async {
            let details = self.client.batch(self.details.batch.id).await?;
            let members = match self.display {
                Display::Screen if self.is_stale => Some(self.members().await?),
                _ => None,
            };
            Ok::<_, ClientError>((details, members))
        };
        match read.await {
            Ok((details, members)) => {
                if let Some(members) = members {
                    (self.matrix, self.is_stale) = (Matrix::new(&details.phases, &members), false);
                }
                (self.details, self.silent) = (details, None);
            }
            Err(error) if error.is_temporary() => self.silent = Some(error.to_string()),
            Err(error) => return Err(error.into()),
        }
        if self.display == Display::Screen {
            // Clears the screen and goes to its first line.
            print!("\x1b[2J\x1b[H");
            self.output.text(&self.details, &self.screen())?;
            if let Some(reason) = &self.silent {
                self.output.warn(&format!("these numbers are old: {reason}"));
            }
        }
        Ok(())
    }

    /// The first members with their steps.
    async fn members(&self) -> Result<Vec<MemberDetails>, ClientError> {
        if self.limit == 0 {
            return Ok(Vec::new());
        }
        let batch = self.details.batch.id;
        let page = PageRequest { limit: Some(self.limit), ..PageRequest::default() };
        let members = self.client.batch_members(batch, page).await?.members;
        let mut details = Vec::with_capacity(members.len());
        for member in members {
            details.push(self.client.batch_member(batch, member.id).await?);
        }
        Ok(details)
    }

    fn screen(&self) -> String {
        let batch = &self.details.batch;
        let mut text = format!(
            "batch {}  {} version {}  {}\n\n",
            batch.id,
            batch.runbook_name,
            batch.runbook_version,
            state(batch)
        );
        for phase in &self.details.phases {
            let steps = phase.step_counts.iter().map(|(state, count)| format!("{count} {state}"));
            let steps = steps.collect::<Vec<_>>().join(", ");
            let _ = writeln!(text, "  {:<32}  {:<18}  {steps}", phase.phase_name, phase_state(phase));
        }
        let _ = writeln!(text, "\n{}\n", self.summary());
        let matrix = self.matrix.to_text();
        if !matrix.is_empty() {
            let _ = writeln!(text, "{matrix}\n{LEGEND}");
        }
        text
    }

    fn summary(&self) -> String {
        let Progress { ended, total } = progress(&self.details);
        let percent = ended.saturating_mul(100).checked_div(total).unwrap_or(0);
        let failed = self.details.batch.member_counts.failed;
        let mut text = format!("{} of {} steps have ended ({percent}%)", count(ended), count(total));
        if failed > 0 {
            let _ = write!(text, ", {} failed", counted(u64::from(failed), "member"));
        }
        if has_ended(self.details.batch.status) {
            return text;
        }
        let now = now();
        let end = match estimate(&self.details, self.begun, now) {
            Estimate::About(end) => {
                let left_ms = i64::try_from(end.duration_since(now).as_millis()).unwrap_or(i64::MAX);
                format!("ends in about {}, at {}", duration(left_ms.max(0)), self.output.time(end))
            }
            Estimate::NotBefore(due) => format!("does not end before {}", self.output.time(due)),
            Estimate::Unknown(reason) => format!("the end cannot be estimated: {reason}"),
        };
        format!("{text}; {end}")
    }

    /// How the batch ended: the exit code follows from it.
    fn outcome(&self) -> Result<(), Failure> {
        let batch = &self.details.batch;
        self.output.hint(&format!("batch {} {}: {}", batch.id, state(batch), self.summary()));
        match batch.status {
            BatchStatus::Completed => Ok(()),
            _ => {
                let reason = batch.error_message.as_ref().map(|reason| format!(": {reason}"));
                let reason = reason.unwrap_or_default();
                Err(Failure::NotCompleted(format!("batch {} is {}{reason}", batch.id, state(batch))))
            }
        }
    }
}

fn now() -> Timestamp {
    let now_ms = i64::try_from(SystemClock.now_ms()).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(now_ms).unwrap_or(Timestamp::MAX)
}
