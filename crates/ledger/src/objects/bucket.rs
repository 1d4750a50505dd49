//! Clients of buckets: their options, and the credentials of the environment.
//!
//! An option that the client does not know is an error: a typing mistake in the name of a credential would otherwise
//! make the client take another one from the environment.

use std::sync::Arc;

use object_store::prefix::PrefixStore;
use object_store::{ObjectStore, ObjectStoreScheme};
use url::Url;

/// Who stores the objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Provider {
    /// Amazon S3, and stores with its interface.
    S3,
    /// Azure Blob Storage.
    Azure,
    /// Google Cloud Storage.
    Gcs,
}

impl std::fmt::Display for Provider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Provider::S3 => "S3",
            Provider::Azure => "Azure Blob Storage",
            Provider::Gcs => "Google Cloud Storage",
        })
    }
}

impl Provider {
    /// The provider of URLs with this scheme.
    pub(super) fn of_scheme(scheme: &str) -> Option<Self> {
        match scheme {
            "s3" => Some(Provider::S3),
            "az" | "abfs" | "abfss" => Some(Provider::Azure),
            "gs" => Some(Provider::Gcs),
            _ => None,
        }
    }

    /// The feature of this crate, of the server and of the command line that has its client.
    pub(super) fn feature(self) -> &'static str {
        match self {
            Provider::S3 => "s3",
            Provider::Azure => "azure",
            Provider::Gcs => "gcs",
        }
    }

    /// Whether this build has its client.
    pub(super) fn is_built_in(self) -> bool {
        match self {
            Provider::S3 => cfg!(feature = "s3"),
            Provider::Azure => cfg!(feature = "azure"),
            Provider::Gcs => cfg!(feature = "gcs"),
        }
    }

    /// What the names of its variables in the environment begin with, in lower case.
    fn prefix(self) -> &'static str {
        match self {
            Provider::S3 => "aws_",
            Provider::Azure => "azure_",
            Provider::Gcs => "google_",
        }
    }
}

/// The client and the folder of a URL.
///
/// # Errors
/// What is wrong with the URL.
pub(super) fn parse(url: &str) -> Result<(Url, object_store::path::Path), String> {
    let parsed = Url::parse(url).map_err(|error| match error {
        url::ParseError::EmptyHost => no_bucket(),
        error => error.to_string(),
    })?;
    if parsed.host_str().is_none_or(str::is_empty) {
        return Err(no_bucket());
    }
    if parsed.password().is_some() || (parsed.scheme() == "s3" && !parsed.username().is_empty()) {
        return Err("has credentials in it; put them into the options or the environment".to_owned());
    }
    if parsed.query().is_some() || parsed.fragment().is_some() || parsed.port().is_some() {
        return Err("has more than a bucket and a folder; put options into the options".to_owned());
    }
    let (_, folder) = ObjectStoreScheme::parse(&parsed).map_err(|error| error.to_string())?;
    Ok((parsed, folder))
}

fn no_bucket() -> String {
    "names no bucket; write s3://BUCKET/FOLDER, az://CONTAINER/FOLDER or gs://BUCKET/FOLDER".to_owned()
}

/// Opens a bucket. Nothing is sent yet.
///
/// # Errors
/// What is wrong with the URL or an option. Values of options are not shown.
pub(super) fn open(
    provider: Provider,
    url: &str,
    options: &[(String, String)],
) -> Result<Arc<dyn ObjectStore>, String> {
    let (url, folder) = parse(url)?;
    let options: Vec<(String, String)> =
        options.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone())).collect();
    let environment = std::env::vars_os().filter_map(|(name, value)| {
        let name = name.into_string().ok()?.to_ascii_lowercase();
        Some((name, value.into_string().ok()?))
    });
    let environment = applicable(provider, &options, environment);
    check_http(environment.iter().chain(&options))?;
    let store = client(provider, &url, &environment, &options)?;
    Ok(Arc::new(PrefixStore::new(store, folder)))
}

/// The variables of the environment that options leave in force. If an option is about credentials or the endpoint, all
/// variables about that are ignored: half of one credential and half of another are none.
fn applicable(
    provider: Provider,
    options: &[(String, String)],
    environment: impl Iterator<Item = (String, String)>,
) -> Vec<(String, String)> {
    let given = |is_about: fn(&str) -> bool| options.iter().any(|(name, _)| is_about(name));
    let (has_credentials, has_endpoint) = (given(is_about_credentials), given(is_about_endpoint));
    let applies = |name: &str| {
        name.starts_with(provider.prefix())
            && !(has_credentials && is_about_credentials(name))
            && !(has_endpoint && is_about_endpoint(name))
    };
    environment.filter(|(name, _)| applies(name)).collect()
}

fn is_about_endpoint(name: &str) -> bool {
    ["endpoint", "endpoint_url", "endpoint_url_s3", "base_url"].iter().any(|end| name.ends_with(end))
        && !is_about_credentials(name)
}

fn is_about_credentials(name: &str) -> bool {
    const WORDS: [&str; 19] = [
        "access_key",
        "account_key",
        "master_key",
        "secret",
        "token",
        "credential",
        "role_",
        "sas_",
        "client_id",
        "tenant_id",
        "authority",
        "msi_",
        "identity",
        "object_id",
        "service_account",
        "azure_cli",
        "skip_signature",
        "metadata_endpoint",
        "endpoint_url_sts",
    ];
    WORDS.iter().any(|word| name.contains(word))
}

/// An endpoint without TLS has to be allowed by name; without this the client fails at the first request only.
fn check_http<'a>(options: impl Iterator<Item = &'a (String, String)> + Clone) -> Result<(), String> {
    let plain = options.clone().find(|(name, value)| is_about_endpoint(name) && value.starts_with("http://"));
    let is_allowed = options.clone().any(|(name, value)| name.ends_with("allow_http") && value == "true");
    match plain {
        Some((name, _)) if !is_allowed => {
            let prefix = name.split_once('_').map_or("", |(prefix, _)| prefix);
            Err(format!(
                "{name} begins with http://, so requests would not be encrypted; set {prefix}_allow_http = \"true\" to \
                 allow it, or write https://"
            ))
        }
        _ => Ok(()),
    }
}

/// The client repeats a request this often, besides the tries of the calls of the ledger.
#[cfg(any(feature = "azure", feature = "gcs", feature = "s3"))]
fn retries() -> object_store::RetryConfig {
    let retry_timeout = std::time::Duration::from_secs(20);
    object_store::RetryConfig { max_retries: 3, retry_timeout, ..object_store::RetryConfig::default() }
}

#[cfg(any(feature = "azure", feature = "gcs", feature = "s3"))]
macro_rules! client {
    ($builder:ty, $url:expr, $environment:expr, $options:expr) => {{
        let mut builder = <$builder>::new().with_url($url.to_string()).with_retry(retries());
        for (name, value) in $environment {
            // The environment has variables of other programs, too.
            if let Ok(key) = key_of(name) {
                builder = builder.with_config(key, value);
            }
        }
        for (name, value) in $options {
            builder = builder.with_config(key_of(name)?, value);
        }
        Ok(Box::new(builder.build().map_err(|error| error.to_string())?))
    }};
}

/// The key of an option.
#[cfg(any(feature = "azure", feature = "gcs", feature = "s3"))]
fn key_of<K: std::str::FromStr>(name: &str) -> Result<K, String> {
    let unknown = |_| format!("there is no option {name:?}; use the names of object_store, as in aws_region");
    name.parse().map_err(unknown)
}

fn client(
    provider: Provider,
    url: &Url,
    environment: &[(String, String)],
    options: &[(String, String)],
) -> Result<Box<dyn ObjectStore>, String> {
    match provider {
        #[cfg(feature = "s3")]
        Provider::S3 => client!(object_store::aws::AmazonS3Builder, url, environment, options),
        #[cfg(feature = "azure")]
        Provider::Azure => client!(object_store::azure::MicrosoftAzureBuilder, url, environment, options),
        #[cfg(feature = "gcs")]
        Provider::Gcs => client!(object_store::gcp::GoogleCloudStorageBuilder, url, environment, options),
        #[cfg(not(all(feature = "azure", feature = "gcs", feature = "s3")))]
        other => {
            let (_, _, _) = (url, environment, options);
            Err(format!("this build has no client for {other}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_url_has_a_bucket_and_a_folder_and_nothing_else() {
        for (url, folder) in [
            ("s3://bucket", ""),
            ("s3://bucket/a/b/", "a/b"),
            ("gs://bucket/a", "a"),
            ("az://container/a", "a"),
            ("abfss://container@account.dfs.core.windows.net/a", "a"),
        ] {
            assert_eq!(parse(url).unwrap().1.as_ref(), folder, "{url}");
        }
        for (url, says) in [
            ("s3://", "names no bucket"),
            ("s3:///folder", "names no bucket"),
            ("gs:", "names no bucket"),
            ("s3://key:secret@bucket/a", "has credentials in it"),
            ("s3://key@bucket/a", "has credentials in it"),
            ("az://container:secret@account/a", "has credentials in it"),
            ("s3://bucket/a?region=x", "more than a bucket and a folder"),
            ("s3://bucket:9000/a", "more than a bucket and a folder"),
        ] {
            let error = parse(url).unwrap_err();
            assert!(error.contains(says) && !error.contains("secret@"), "{url}: {error}");
        }
    }

    #[test]
    fn options_replace_all_of_the_environment_that_is_about_the_same() {
        let environment = options(&[
            ("aws_access_key_id", "other"),
            ("aws_secret_access_key", "other"),
            ("aws_session_token", "other"),
            ("aws_region", "eu-central-1"),
            ("aws_endpoint_url_s3", "https://other"),
            ("google_service_account", "x"),
            ("home", "/root"),
        ]);
        let left = |given: &[(&str, &str)]| {
            let left = applicable(Provider::S3, &options(given), environment.clone().into_iter());
            left.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(left(&[]).len(), 5);
        let own = [("aws_access_key_id", "a"), ("aws_secret_access_key", "b")];
        assert_eq!(left(&own), ["aws_region", "aws_endpoint_url_s3"]);
        assert_eq!(left(&[("aws_endpoint", "https://mine")]).len(), 4);
        assert_eq!(left(&[("aws_region", "x")]).len(), 5, "it is set after those of the environment");
    }

    #[test]
    fn an_endpoint_without_encryption_is_allowed_by_name_only() {
        let checked = |pairs: &[(&str, &str)]| check_http(options(pairs).iter());
        checked(&[("aws_endpoint", "https://host")]).unwrap();
        checked(&[("aws_endpoint", "http://host"), ("aws_allow_http", "true")]).unwrap();
        let error = checked(&[("azure_storage_endpoint", "http://host")]).unwrap_err();
        assert!(error.contains("set azure_allow_http"), "{error}");
    }

    #[cfg(feature = "s3")]
    #[test]
    fn options_that_no_client_knows_are_refused_and_values_are_not_shown() {
        for (pairs, says) in [
            (&[("aws_acces_key_id", "hunter2")][..], "there is no option \"aws_acces_key_id\""),
            (&[("azure_client_id", "hunter2")][..], "there is no option"),
            (&[("aws_secret_access_key", "hunter2")][..], "Missing AccessKeyId"),
        ] {
            let error = open(Provider::S3, "s3://bucket/a", &options(pairs)).unwrap_err();
            assert!(error.contains(says) && !error.contains("hunter2"), "{error}");
        }
        let own = [("AWS_Access_Key_Id", "a"), ("aws_secret_access_key", "b"), ("aws_region", "x")];
        open(Provider::S3, "s3://bucket/a", &options(&own)).unwrap();
    }
}
