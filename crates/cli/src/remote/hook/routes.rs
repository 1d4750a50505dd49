//! Declaring routes.

use segno_api::client::Expected;
use segno_api::{Client, Json, hook};
use serde_json::{Map, Value, json};

use super::super::start::json as read_json;
use super::arguments::{Scheme, Settings};
use crate::exit::Failure;
use crate::output::{Output, Page, Paging, Rows, Table, target};

/// Declares a route.
pub async fn create(
    client: &Client,
    name: &str,
    settings: &Settings,
    output: &Output,
) -> Result<(), Failure> {
    if settings.verify.is_none() && settings.declaration.is_none() {
        let problem = "--verify is missing; pass how requests are verified, `none` takes every request";
        return Err(Failure::Refused(problem.to_owned()));
    }
    let created = client.put_hook(name, &declared(settings)?, Expected::Absent).await?;
    told(client, &created, output)
}

/// Changes a route.
pub async fn update(
    client: &Client,
    name: &str,
    settings: &Settings,
    output: &Output,
) -> Result<(), Failure> {
    let updated = client.patch_hook(name, &declared(settings)?).await?;
    told(client, &updated, output)
}

/// Deletes a route.
pub async fn delete(client: &Client, name: &str, output: &Output) -> Result<(), Failure> {
    client.delete_hook(name).await?;
    output.print(&json!({ "deleted": name }), Table::default().line(name, "deleted"))
}

/// Shows a route.
pub async fn show(client: &Client, name: &str, output: &Output) -> Result<(), Failure> {
    let hook = client.hook(name).await?;
    let declaration: Value = serde_json::from_str(hook.declaration.text()).unwrap_or_default();
    output.text(&hook, &format!("{}\n{declaration:#}\n", url(client, &hook)))
}

/// Lists routes.
pub async fn list(client: &Client, paging: &Paging, output: &Output) -> Result<(), Failure> {
    let page = paging.gather(|request| async move {
        let page = client.hooks(request).await?;
        Ok(Page::of(page.hooks, page.unreadable, page.next_cursor))
    });
    let page = page.await?;
    let mut rows = Rows::new(["name", "target", "verification", "taken", "path"]);
    for hook in &page.items {
        let declaration: Value = serde_json::from_str(hook.declaration.text()).unwrap_or_default();
        let verification = &declaration["verification"];
        let scheme = verification["type"].as_str().or(verification.as_str()).unwrap_or_default();
        let taken = match (declaration["enabled"].as_bool(), declaration["store_only"].as_bool()) {
            (Some(false), _) => "no",
            (_, Some(true)) => "stored only",
            _ => "yes",
        };
        let orchestration = declaration["orchestration"].as_str();
        let target = target(orchestration, declaration["function"].as_str().unwrap_or_default());
        rows.add([hook.name.clone(), target, scheme.into(), taken.into(), hook.path.clone()]);
    }
    output.list(&page, &rows)
}

fn told(client: &Client, hook: &hook::Hook, output: &Output) -> Result<(), Failure> {
    output.print(hook, Table::default().line(&hook.name, url(client, hook)))
}

/// Where senders post to.
fn url(client: &Client, hook: &hook::Hook) -> String {
    format!("{}{}", client.address().trim_end_matches('/'), hook.path)
}

/// The settings that were named, as JSON.
fn declared(settings: &Settings) -> Result<Json, Failure> {
    let mut declaration: Map<String, Value> = match &settings.declaration {
        None => Map::new(),
        Some(text) => serde_json::from_str(read_json("--declaration", text)?.text())
            .map_err(|error| Failure::Refused(format!("--declaration must be a JSON object: {error}")))?,
    };
    if let Some(input) = &settings.input {
        let input = read_json("--input", input)?;
        let input = serde_json::from_str(input.text())
            .map_err(|error| Failure::Refused(format!("--input cannot be a template: {error}")))?;
        declaration.insert("input".to_owned(), input);
    }
    if let Some(scheme) = settings.verify {
        declaration.insert("verification".to_owned(), verification(scheme, settings)?);
    }
    if settings.dedup_header.is_some() || settings.dedup_key.is_some() {
        let dedup = [
            ("header", settings.dedup_header.clone()),
            ("key", settings.dedup_key.clone()),
            ("window", settings.dedup_window.map(|window| window.to_string())),
        ];
        let given = dedup.into_iter().filter_map(|(name, value)| Some((name.to_owned(), json!(value?))));
        declaration.insert("dedup".to_owned(), Value::Object(given.collect()));
    } else if settings.dedup_window.is_some() {
        let problem = "--dedup-window needs --dedup-header or --dedup-key";
        return Err(Failure::Refused(problem.to_owned()));
    }
    if !settings.headers.is_empty() {
        declaration.insert("headers".to_owned(), json!(settings.headers));
    }
    for (name, value) in [
        ("description", settings.description.as_ref().map(|text| json!(text))),
        ("function", settings.function.as_ref().map(|text| json!(text))),
        ("orchestration", settings.orchestration.as_ref().map(|text| json!(text))),
        ("filter", settings.filter.as_ref().map(|text| json!(text))),
        ("retention", settings.retention.map(|time| json!(time))),
        ("store_only", settings.store_only.map(|yes| json!(yes))),
        ("enabled", settings.enabled.map(|yes| json!(yes))),
    ] {
        if let Some(value) = value {
            declaration.insert(name.to_owned(), value);
        }
    }
    Json::of(&declaration).map_err(|error| Failure::Refused(error.to_string()))
}

fn verification(scheme: Scheme, settings: &Settings) -> Result<Value, Failure> {
    let name = match scheme {
        Scheme::None => return Ok(json!("none")),
        Scheme::SharedSecret => "shared_secret",
        Scheme::Github => "github",
        Scheme::Stripe => "stripe",
        Scheme::StandardWebhooks => "standard_webhooks",
    };
    let secrets: Vec<Value> =
        settings.secrets.iter().map(|text| reference(text)).collect::<Result<_, _>>()?;
    let mut verification = json!({ "type": name, "secrets": secrets });
    if let Some(header) = &settings.secret_header {
        verification["header"] = json!(header);
    }
    if let Some(tolerance) = &settings.tolerance {
        verification["tolerance"] = json!(tolerance);
    }
    Ok(verification)
}

/// Where a secret is, as JSON.
///
/// # Errors
/// When it is neither of the two forms.
pub fn reference(text: &str) -> Result<Value, Failure> {
    match text.split_once(':') {
        Some((kind @ ("env" | "file"), place)) if !place.is_empty() => Ok(json!({ kind: place })),
        _ => Err(Failure::Refused(format!("--secret {text}: write env:NAME or file:/PATH"))),
    }
}
