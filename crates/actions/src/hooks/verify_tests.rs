use super::*;
use crate::functions::SecretReference;
use crate::hooks::{Headers, signed_headers};
use bytes::Bytes;
use serde_json::{Value, json};

async fn secret(text: &str) -> Secret {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    SecretReference::File(file.path().to_owned()).resolve().await.unwrap()
}

fn scheme(name: &str) -> Verification {
    serde_json::from_value(json!({ "type": name, "secrets": [{ "env": "A" }] })).unwrap()
}

fn incoming(headers: &[(&str, &str)], body: &[u8]) -> Incoming {
    let headers: Headers = headers.iter().copied().collect();
    Incoming { headers, body: Bytes::copy_from_slice(body), ..Incoming::default() }
}

/// The outcome of a check: `ok`, or the short name of why not.
async fn check(
    verification: &Verification,
    secrets: &[&str],
    incoming: &Incoming,
    now_s: u64,
) -> &'static str {
    let mut read = Vec::new();
    for text in secrets {
        read.push(secret(text).await);
    }
    match verification.verify(&read, incoming, now_s) {
        Ok(()) => "ok",
        Err(unverified) => {
            assert!(secrets.iter().all(|secret| !unverified.detail.contains(secret)), "{unverified:?}");
            unverified.reason
        }
    }
}

/// The example of GitHub's documentation, "Validating webhook deliveries".
#[tokio::test]
async fn githubs_own_example_is_believed() {
    let signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    let secret = "It's a Secret to Everybody";
    let sound = incoming(&[("X-Hub-Signature-256", signature)], b"Hello, World!");
    assert_eq!(check(&scheme("github"), &[secret], &sound, 0).await, "ok");
    assert_eq!(check(&scheme("github"), &["new", secret], &sound, 0).await, "ok");
    assert_eq!(check(&scheme("github"), &["new"], &sound, 0).await, "wrong_signature");
    for (header, reason) in [
        ("757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17", "malformed_signature"),
        ("sha1=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17", "malformed_signature"),
        ("sha256=", "malformed_signature"),
        ("sha256=757107ea", "malformed_signature"),
        ("sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e", "malformed_signature"),
        ("sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e1700", "malformed_signature"),
        ("sha256=xyz", "malformed_signature"),
        ("", "malformed_signature"),
    ] {
        let request = incoming(&[("x-hub-signature-256", header)], b"Hello, World!");
        assert_eq!(check(&scheme("github"), &[secret], &request, 0).await, reason, "{header}");
    }
    let twice =
        incoming(&[("x-hub-signature-256", signature), ("X-Hub-Signature-256", signature)], b"Hello, World!");
    assert_eq!(check(&scheme("github"), &[secret], &twice, 0).await, "missing_signature");
    let none = incoming(&[("x-hub-signature", signature)], b"Hello, World!");
    assert_eq!(check(&scheme("github"), &[secret], &none, 0).await, "missing_signature");
}

/// The form is that of Stripe's documentation, "Verify webhook signatures manually"; it gives no secret with its example,
/// so the signature is `printf '1492774577.{"id":"evt_1"}' | openssl dgst -sha256 -hmac whsec_test_secret`.
#[tokio::test]
async fn stripes_form_is_believed_within_its_window() {
    const TIME: u64 = 1_492_774_577;
    let v1 = "799c4ba7bb339f3c8601adfd112f0e477c930a268be1243d341abb8286501c2f";
    let old = "6ffbb59b2300aae63f272406069a9788598b792a944a07aba816edb039989a39";
    let (secret, body) = ("whsec_test_secret", br#"{"id":"evt_1"}"#);
    for (header, now_s, outcome) in [
        (format!("t={TIME},v1={v1},v0={old}"), TIME, "ok"),
        (format!("t={TIME},v1={old},v1={v1}"), TIME, "ok"),
        (format!("t={TIME}, v1={v1}"), TIME, "ok"),
        (format!("t={TIME},v1={v1}"), TIME + 300, "ok"),
        (format!("t={TIME},v1={v1}"), TIME + 301, "outside_window"),
        (format!("t={TIME},v1={v1}"), TIME - 300, "ok"),
        (format!("t={TIME},v1={v1}"), TIME - 301, "outside_window"),
        (format!("t={},v1={v1}", TIME + 1), TIME, "wrong_signature"),
        (format!("t={TIME},v0={v1}"), TIME, "malformed_signature"),
        (format!("t={TIME},v1={}", &v1[2..]), TIME, "malformed_signature"),
        (format!("t={TIME},t={TIME},v1={v1}"), TIME, "malformed_signature"),
        (format!("v1={v1}"), TIME, "malformed_signature"),
        (format!("t=+{TIME},v1={v1}"), TIME, "malformed_signature"),
        (format!("t=99999999999999999999999,v1={v1}"), TIME, "malformed_signature"),
        (format!("t={TIME}{}", format!(",v1={v1}").repeat(17)), TIME, "malformed_signature"),
        ("nonsense".to_owned(), TIME, "malformed_signature"),
    ] {
        let request = incoming(&[("stripe-signature", &header)], body);
        assert_eq!(
            check(&scheme("stripe"), &["whsec_other", secret], &request, now_s).await,
            outcome,
            "{header} {now_s}"
        );
    }
}

/// The example of the Standard Webhooks specification.
#[tokio::test]
async fn the_example_of_standard_webhooks_is_believed_within_its_window() {
    const TIME: u64 = 1_614_265_330;
    let (id, body) = ("msg_p5jXN8AQM9LWM0D4loKWxJek", br#"{"test": 2432232314}"#);
    let (secret, v1) =
        ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    let other = "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=";
    for (id, time, signatures, now_s, outcome) in [
        (id, TIME, v1.to_owned(), TIME, "ok"),
        (id, TIME, format!("{other} {v1} v2,x"), TIME, "ok"),
        (id, TIME, other.to_owned(), TIME, "wrong_signature"),
        (id, TIME, v1.replacen("v1,", "v2,", 1), TIME, "malformed_signature"),
        (id, TIME, "v1,***".to_owned(), TIME, "malformed_signature"),
        (id, TIME, "v1,AAAA".to_owned(), TIME, "malformed_signature"),
        (id, TIME, String::new(), TIME, "malformed_signature"),
        ("", TIME, v1.to_owned(), TIME, "malformed_signature"),
        ("msg_other", TIME, v1.to_owned(), TIME, "wrong_signature"),
        (id, TIME - 1, v1.to_owned(), TIME, "wrong_signature"),
        (id, TIME, v1.to_owned(), TIME + 301, "outside_window"),
        (id, TIME, v1.to_owned(), TIME - 301, "outside_window"),
    ] {
        let time = time.to_string();
        let headers = [("webhook-id", id), ("webhook-timestamp", &time), ("webhook-signature", &signatures)];
        let request = incoming(&headers, body);
        let secrets = ["whsec_AAAA", "whsec_not base64", secret];
        let found = check(&scheme("standard_webhooks"), &secrets, &request, now_s).await;
        assert_eq!(found, outcome, "{id} {time} {signatures} {now_s}");
    }
    let unnamed = incoming(&[("webhook-timestamp", "1614265330"), ("webhook-signature", v1)], body);
    assert_eq!(check(&scheme("standard_webhooks"), &[secret], &unnamed, TIME).await, "missing_signature");
}

#[tokio::test]
async fn a_shared_secret_is_compared_as_a_whole() {
    let verification = scheme("shared_secret");
    for (given, outcome) in [
        ("canary", "ok"),
        ("second", "ok"),
        ("canar", "wrong_secret"),
        ("canary2", "wrong_secret"),
        ("", "wrong_secret"),
    ] {
        let request = incoming(&[("X-Webhook-Secret", given)], b"");
        assert_eq!(check(&verification, &["canary", "second"], &request, 0).await, outcome, "{given}");
    }
    assert_eq!(check(&verification, &["canary"], &incoming(&[], b""), 0).await, "missing_signature");
}

/// What a sender of ours signs is believed, and nothing that differs from it by one bit.
#[tokio::test]
async fn every_changed_bit_is_noticed() {
    let (key, id, now_s, body) = ("whsec_c2VjcmV0LWtleQ==", "msg_1", 1_700_000_000, &b"{\"a\":\x00\xff}"[..]);
    for name in ["github", "stripe", "standard_webhooks"] {
        let verification = scheme(name);
        let headers = signed_headers(&verification, key, id, now_s, body).unwrap();
        let as_sent = |headers: &[(String, String)], body: &[u8]| {
            let headers: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
            incoming(&headers, body)
        };
        assert_eq!(check(&verification, &[key], &as_sent(&headers, body), now_s).await, "ok", "{name}");
        for bit in 0..body.len() * 8 {
            let mut changed = body.to_vec();
            changed[bit / 8] ^= 1 << (bit % 8);
            let found = check(&verification, &[key], &as_sent(&headers, &changed), now_s).await;
            assert_eq!(found, "wrong_signature", "{name}, bit {bit} of the body");
        }
        for place in 0..headers.last().unwrap().1.len() {
            let mut changed = headers.clone();
            let value = &mut changed.last_mut().unwrap().1;
            let mut bytes = std::mem::take(value).into_bytes();
            bytes[place] ^= 1;
            *value = String::from_utf8(bytes).unwrap();
            let found = check(&verification, &[key], &as_sent(&changed, body), now_s).await;
            assert_ne!(found, "ok", "{name}, character {place} of the signature");
        }
    }
}

#[test]
fn a_route_without_verification_says_so() {
    let none: Verification = serde_json::from_value(Value::from("none")).unwrap();
    assert_eq!(none.verify(&[], &incoming(&[], b"x"), 0), Ok(()));
}
