use super::*;

fn guard(allow_hosts: &[&str]) -> Guard {
    let entries: Vec<String> = allow_hosts.iter().map(|&entry| entry.to_owned()).collect();
    Guard::new(false, &entries).unwrap()
}

/// Whether a URL is refused by what can be seen in it.
fn is_refused(guard: &Guard, url: &str) -> bool {
    Url::parse(url).map_or(true, |url| guard.check_url(&url).is_err())
}

#[test]
fn addresses_that_are_not_public_are_refused_in_every_form() {
    let strict = Guard::default();
    for host in [
        // Loopback, in all the forms that URL parsers know.
        "127.0.0.1",
        "127.1",
        "127.0.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "017700000001",
        "127.0.0.1.",
        "127.255.255.254",
        "%31%32%37.0.0.1",
        "１２７.０.０.１",
        "127。0。0。1",
        // This network, private networks, CGNAT.
        "0.0.0.0",
        "0",
        "0.1.2.3",
        "10.0.0.1",
        "10.255.255.255",
        "0xa.1",
        "012.0.0.1",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.0.1",
        "0xc0a80001",
        "3232235521",
        "100.64.0.1",
        "100.127.255.255",
        // Metadata services.
        "169.254.169.254",
        "2852039166",
        "0xa9fea9fe",
        "0251.0376.0251.0376",
        "169.254.170.2",
        "100.100.100.200",
        "192.0.0.192",
        "168.63.129.16",
        "[fd00:ec2::254]",
        // Documentation, benchmarks, relays, multicast, reserved, broadcast.
        "192.0.0.1",
        "192.0.2.1",
        "192.88.99.1",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        // IPv6: unspecified, loopback, mapped, compatible, translated, tunnelled, local, multicast, documentation.
        "[::]",
        "[::1]",
        "[0:0:0:0:0:0:0:1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::ffff:10.0.0.1]",
        "[::ffff:8.8.8.8]",
        "[::127.0.0.1]",
        "[::7f00:1]",
        "[64:ff9b::7f00:1]",
        "[64:ff9b::a00:1]",
        "[64:ff9b:1::7f00:1]",
        "[2002:7f00:1::]",
        "[2002:a00:1::1]",
        "[2001::1]",
        "[2001:0:7f00:1::]",
        "[2001:10::1]",
        "[2001:20::1]",
        "[2001:db8::1]",
        "[3fff::1]",
        "[3fff:fff::1]",
        "[fc00::1]",
        "[fd12:3456::1]",
        "[fe80::1]",
        "[febf::1]",
        "[fec0::1]",
        "[ff02::1]",
        "[ff0e::1]",
        "[100::1]",
        "[5f00::1]",
        "[4000::1]",
    ] {
        for url in [format!("http://{host}/"), format!("https://user:secret@{host}:8443/path?query")] {
            assert!(is_refused(&strict, &url), "{url} was let through");
        }
    }
    for url in ["file:///etc/passwd", "gopher://example.org/", "ftp://example.org/", "data:,x", "http:///x"] {
        assert!(is_refused(&strict, url) || Url::parse(url).unwrap().host_str() == Some("x"), "{url}");
    }
}

#[test]
fn public_addresses_and_names_pass() {
    for host in [
        "example.org",
        "8.8.8.8",
        "1.1.1.1",
        "9.255.255.255",
        "11.0.0.1",
        "100.63.255.255",
        "100.128.0.1",
        "126.255.255.255",
        "128.0.0.1",
        "169.253.255.255",
        "172.15.255.255",
        "172.32.0.1",
        "192.167.255.255",
        "198.17.255.255",
        "198.20.0.1",
        "223.255.255.255",
        "[2606:4700:4700::1111]",
        "[2a00:1450:4001::1]",
        "[2001:4860:4860::8888]",
        "[2003::1]",
    ] {
        assert!(!is_refused(&Guard::default(), &format!("https://{host}/")), "{host} was refused");
    }
}

#[test]
fn one_private_address_of_a_name_refuses_it() {
    let public: IpAddr = "8.8.8.8".parse().unwrap();
    let private: IpAddr = "10.0.0.1".parse().unwrap();
    let strict = Guard::default();
    assert!(strict.check_addresses("example.org", &[public]).is_ok());
    assert!(strict.check_addresses("example.org", &[public, private]).is_err());
    assert!(strict.check_addresses("example.org", &[]).is_err());
}

#[test]
fn what_is_listed_passes_and_nothing_else() {
    let private: IpAddr = "10.1.2.3".parse().unwrap();
    let loopback: IpAddr = "::1".parse().unwrap();
    let named = guard(&["Intranet.Example."]);
    assert!(named.check_addresses("intranet.example", &[private]).is_ok());
    assert!(named.check_addresses("INTRANET.example.", &[private, loopback]).is_ok());
    assert!(named.check_addresses("evil.intranet.example", &[private]).is_err());
    let network = guard(&["10.1.0.0/16", "[::1]"]);
    assert!(!is_refused(&network, "http://10.1.255.1/") && !is_refused(&network, "http://[::1]:80/"));
    assert!(is_refused(&network, "http://10.2.0.1/") && is_refused(&network, "http://127.0.0.1/"));
    assert!(network.check_addresses("anything", &[private, loopback]).is_ok());
    let open = Guard::new(true, &[]).unwrap();
    assert!(!is_refused(&open, "http://127.0.0.1/") && is_refused(&open, "file:///x"));
    assert!(open.is_open() && named.is_open() && !Guard::default().is_open());
    for bad in ["", "http://x", "10.0.0.0/33", "a b", ".example"] {
        assert!(Guard::new(false, &[bad.to_owned()]).is_err(), "{bad:?}");
    }
}
