//! The reference page `/docs`: its files are part of the binary.

/// What pages of the server may load: its own files only. The reference page sets styles and one script in the page itself.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; \
     script-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'";
