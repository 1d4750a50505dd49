//! Certificates of servers that are not accepted: why, and what to do about it.

use std::error::Error;
use std::io;

use rustls::CertificateError;

/// Why the certificate of a server was not accepted; `None` when a call failed for another reason.
pub(super) fn refusal(error: &reqwest::Error) -> Option<String> {
    match of_tls(error)? {
        rustls::Error::InvalidCertificate(refused) => {
            let server =
                error.url().map_or_else(|| "the server".to_owned(), |url| url.origin().ascii_serialization());
            Some(format!("the certificate of {server} is not accepted: {}", reason(refused)))
        }
        // A client cannot be built on a machine without certificates.
        rustls::Error::General(reason) if error.is_builder() => Some(format!(
            "certificates of servers cannot be verified: {reason}; install the certificates of the system (package \
             ca-certificates), or set SSL_CERT_FILE to a PEM file"
        )),
        _ => None,
    }
}

/// The error of TLS among the causes of an error. An I/O error has the error that it wraps apart from its causes.
fn of_tls<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<rustls::Error>() {
            return Some(found);
        }
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = match wrapped {
            Some(wrapped) => Some(wrapped as &(dyn Error + 'static)),
            None => error.source(),
        };
    }
    None
}

fn reason(error: &CertificateError) -> String {
    let text = match error {
        CertificateError::UnknownIssuer => {
            "its issuer is unknown on this machine; set SSL_CERT_FILE to a PEM file with the certificate of the issuer"
        }
        // Its issuer has the name of one that is known.
        CertificateError::BadSignature
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "its signature is not that of an issuer that this machine knows; set SSL_CERT_FILE to a PEM file with the \
             certificate of the issuer"
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "it has expired; renew it on the server"
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "it is not valid yet; check the clocks of this machine and of the server"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "it is for another host; use an address with a host name of the certificate"
        }
        CertificateError::Revoked => "it was revoked; replace it on the server",
        other => return format!("{other}; check the certificate on the server"),
    };
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_tls_is_found_among_causes_and_within_io_errors() {
        let refused = || rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let once = io::Error::new(io::ErrorKind::InvalidData, refused());
        assert_eq!(of_tls(&once), Some(&refused()));
        assert_eq!(of_tls(&io::Error::other(once)), Some(&refused()));
        assert_eq!(of_tls(&io::Error::from(io::ErrorKind::ConnectionRefused)), None);
    }

    #[test]
    fn what_to_do_depends_on_what_is_wrong() {
        for (error, told) in [
            (CertificateError::UnknownIssuer, "SSL_CERT_FILE"),
            (CertificateError::BadSignature, "SSL_CERT_FILE"),
            (CertificateError::Expired, "renew it"),
            (CertificateError::NotValidYet, "clocks"),
            (CertificateError::NotValidForName, "another host"),
            (CertificateError::Revoked, "replace it"),
            (CertificateError::BadEncoding, "check the certificate"),
        ] {
            assert!(reason(&error).contains(told), "{error:?}: {}", reason(&error));
        }
    }
}
