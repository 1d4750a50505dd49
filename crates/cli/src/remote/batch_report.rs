//! `segno batch report`: members and steps of a batch as CSV, printed while they are read.

use segno_api::Client;

use crate::exit::Failure;
use crate::output::{Format, Output, write};

/// Prints the report. A connection that breaks is a failure: what was printed is not all.
pub async fn run(client: &Client, batch: u64, output: &Output) -> Result<(), Failure> {
    if output.format != Format::Table {
        let text = "a report is CSV; leave out --output, or use `segno batch members -o json`";
        return Err(Failure::Refused(text.to_owned()));
    }
    let mut report = client.batch_report(batch).await?;
    loop {
        match report.next().await {
            Ok(Some(piece)) => write(&piece)?,
            Ok(None) => return Ok(()),
            Err(error) => {
                let unknown = format!("the report of batch {batch} is not complete");
                return Err(Failure::Unanswered { error, unknown });
            }
        }
    }
}
