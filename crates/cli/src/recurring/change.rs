//! `segno recurring create` and `update`.

use std::collections::BTreeMap;

use segno_api::Json;
use segno_api::recurring::{Daylight, DaylightGap, DaylightOverlap, RecurringFields};

use super::arguments::{Create, GapRule, OverlapRule, Update, on_clocks_of};
use super::fields::fill;
use super::list::whole;
use crate::exit::Failure;
use crate::moment::Moment;
use crate::output::{Output, Table};

/// Makes one.
pub async fn create(arguments: Create, output: &Output) -> Result<(), Failure> {
    let client = arguments.connection.client(output)?;
    let schedule = &arguments.schedule;
    let spec = schedule.spec(output)?;
    let daylight = Daylight {
        gap: match schedule.gap {
            GapRule::Shift => DaylightGap::Shift,
            GapRule::Skip => DaylightGap::Skip,
        },
        overlap: match schedule.overlap {
            OverlapRule::First => DaylightOverlap::First,
            OverlapRule::Last => DaylightOverlap::Last,
            OverlapRule::Both => DaylightOverlap::Both,
        },
    };
    let mut fields = RecurringFields {
        daylight: (daylight != Daylight::default()).then_some(daylight),
        cron_expr: spec.cron_expr,
        every: spec.every.map(|every| every.to_string()),
        at: spec.at,
        timezone: Some(spec.timezone),
        anchor: spec.anchor,
        starts_at: spec.starts_at,
        ends_at: spec.ends_at,
        exclude: (!spec.exclude.is_empty()).then_some(spec.exclude),
        enabled: arguments.paused.then_some(false),
        ..RecurringFields::default()
    };
    fill(arguments.call, arguments.policy, &mut fields)?;
    let created = client.create_recurring(&fields).await?;
    created.warnings.iter().for_each(|warning| output.warn(warning));
    let next = created
        .next_execution
        .map_or("paused".to_owned(), |next| format!("fires first at {}", output.time(next)));
    let table = Table::default().line(&created.recurring_id, next).line("schedule", &created.schedule);
    output.print(&created, table)
}

/// Changes one.
pub async fn update(arguments: Update, output: &Output) -> Result<(), Failure> {
    let client = arguments.connection.client(output)?;
    let zone = arguments.timezone.as_deref();
    let resolved =
        |moment: Option<Moment>| moment.map(|moment| on_clocks_of(zone, moment, output)).transpose();
    let mut fields = RecurringFields {
        cron_expr: arguments.cron,
        every: arguments.every.map(|every| every.to_string()),
        at: resolved(arguments.at)?,
        timezone: arguments.timezone.clone(),
        ends_at: resolved(arguments.ends_at)?,
        exclude: (!arguments.exclude.is_empty()).then_some(arguments.exclude),
        ..RecurringFields::default()
    };
    fill(arguments.call, arguments.policy, &mut fields)?;
    // By way of text, so that the payload stays as it was given.
    let text = serde_json::to_string(&fields).map_err(std::io::Error::from)?;
    let mut changes: BTreeMap<String, Json> = serde_json::from_str(&text).map_err(std::io::Error::from)?;
    changes.extend(arguments.clear.into_iter().map(|field| (field, Json::null())));
    let changes = Json::of(&changes).map_err(std::io::Error::from)?;
    let updated = client.update_recurring(&arguments.id, &changes).await?;
    updated.warnings.iter().for_each(|warning| output.warn(warning));
    output.print(&updated, whole(&updated, output))
}
