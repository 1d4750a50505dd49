//! `segno count`: how many instances there are, by state, name or failure.

use clap::{Args, ValueEnum};
use segno_api::counts::{CountBy, CountInstances};

use super::arguments::Filter;
use super::connection::Connection;
use crate::exit::Failure;
use crate::moment::{self, Moment, past_help};
use crate::output::{Output, Rows, count};

/// What is counted, and by what.
#[derive(Debug, Args)]
pub struct CountArguments {
    /// By what instances are counted.
    #[arg(long, value_enum, default_value_t = By::Status)]
    pub by: By,
    /// Which instances.
    #[command(flatten)]
    pub filter: Filter,
    /// Only those that failed with this code, or with this category where there is no code.
    #[arg(long, value_name = "CODE")]
    pub failure: Option<String>,
    #[arg(long, value_name = "TIME", value_parser = moment::past, help = past_help!("Only those that ended at or after this time"))]
    pub ended_from: Option<Moment>,
    #[arg(long, value_name = "TIME", value_parser = moment::past, help = past_help!("Only those that ended before this time"))]
    pub ended_before: Option<Moment>,
    /// Look at this many instances at most, newest first.
    #[arg(long, value_name = "NUMBER", default_value_t = 10_000)]
    pub limit: usize,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// By what instances are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// The state of instances.
    Status,
    /// The orchestration of instances.
    Orchestration,
    /// The function that instances call.
    Function,
    /// The code of failures.
    Failure,
}

/// Counts.
pub async fn run(arguments: CountArguments, output: &Output) -> Result<(), Failure> {
    let client = arguments.connection.client(output)?;
    let CountArguments { by, filter, failure, limit, .. } = arguments;
    let (heading, by) = match by {
        By::Status => ("status", CountBy::Status),
        By::Orchestration => ("orchestration", CountBy::Orchestration),
        By::Function => ("function", CountBy::Function),
        By::Failure => ("failure", CountBy::Failure),
    };
    let request = CountInstances {
        by,
        prefix: filter.prefix,
        status: filter.status,
        orchestration: filter.orchestration,
        function: filter.function,
        label: filter.label,
        created_from: output.optional_moment(filter.created_from)?,
        created_before: output.optional_moment(filter.created_before)?,
        failure,
        ended_from: output.optional_moment(arguments.ended_from)?,
        ended_before: output.optional_moment(arguments.ended_before)?,
        limit: Some(limit),
    };
    let counts = client.counts(&request).await?;
    let mut rows = Rows::new([heading, "count"]);
    for named in &counts.counts {
        rows.add([named.name.clone(), count(named.count)]);
    }
    output.text(&counts, &rows.to_text(output.colours))?;
    if counts.truncated {
        let examined = count(counts.examined);
        output.warn(&format!("only the newest {examined} instances were counted; raise --limit for more"));
    }
    Ok(())
}
