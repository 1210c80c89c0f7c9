// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"regexp"
	"strings"
)

// shape is what a secret looks like, whatever stands before it. Its first group is the secret, or all of it is.
type shape struct {
	marks  []string // in lower case; one of them is in each text that has the shape
	regexp *regexp.Regexp
}

// shapes are the secrets that Kubernetes, Machines and HTTP have, beside those of rules.json.
var shapes = []shape{
	{ // of PEM, SSH and PGP
		[]string{"private key"},
		regexp.MustCompile(`(?s)-{4,5} ?BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)? ?-{4,5}.*?` +
			`(?:-{4,5} ?END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)? ?-{4,5}|$)`),
	},
	{[]string{"private-lines:"}, regexp.MustCompile(`(?s)Private-Lines:.*?(?:Private-MAC: *[0-9a-f]*|$)`)},
	{[]string{"eyj"}, regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*){1,4}`)},
	{
		[]string{"bearer", "basic"},
		regexp.MustCompile(`(?i)\b(?:bearer|basic)(?: +|%20|\\u0020)([A-Za-z0-9._~+/=-]{8,})`),
	},
	{[]string{"cookie:"}, regexp.MustCompile(`(?i)cookie: *([^\r\n"'\\]+)`)},
	{[]string{"://"}, regexp.MustCompile( // whose password may have a slash, unlike a host with a port
		`://(?:([^\s"'<>\\/?#@:]+(?::[^\s"'<>\\/?#]*)?|:[^\s"'<>\\/?#]+)|` +
			`([^\s"'<>\\/?#@:]*:(?:[^\s"'<>\\0-9]|[0-9]+[^\s"'<>\\0-9/])[^\s"'<>\\]*))@`)},
	{[]string{
		"$1$", "$2", "$5$", "$6$", "$7$", "$y$", "$gy$", "$argon2", "$apr1$", "$pbkdf2", "$scrypt",
	}, regexp.MustCompile(
		`\$(?:1|2[abxy]?|5|6|7|y|gy|apr1|argon2(?:id?|d)|pbkdf2[a-z0-9-]*|scrypt)\$[A-Za-z0-9./+,=$-]{16,}`)},
	{[]string{"{ssha", "{sha", "{crypt}"}, regexp.MustCompile(`\{(?i:s?sha(?:256|512)?|crypt)\}[A-Za-z0-9+/=.$]{20,}`)},
	{[]string{"password "}, regexp.MustCompile(`(?i)\b(?:login|user) +\S+ +password +(\S+)`)},
	{[]string{"identified by"}, regexp.MustCompile(`(?i)identified by +(?:password +)?['"]([^'"]+)`)},
	{[]string{"pass -p", "curl "}, regexp.MustCompile(
		`\b(?:sshpass +-p +|curl +(?:[^\n|;]*? )?(?:-u|--user)[ =]*)['"]?([^\s'"]+)`)},
	{[]string{"sig="}, regexp.MustCompile(`(?i)[?&;]sig=([^\s&"'\\]+)`)},
	{[]string{"chpasswd", "passwd --stdin"}, regexp.MustCompile(
		`\becho +(?:-[a-z]+ +)?['"]?([^\s'"|]+)['"]? *\| *(?:sudo +)?(?:chpasswd|passwd)\b`)},
	{[]string{
		"sk0", "sk1", "sk2", "sk3", "sk4", "sk5", "sk6", "sk7", "sk8", "sk9", "ska", "skb", "skc", "skd", "ske", "skf",
	}, regexp.MustCompile(`\bSK[0-9a-fA-F]{32}\b`)}, // of Twilio
	// Of OpenAI and others, Google, and K3s.
	{[]string{"sk-ant", "sk-proj", "sk-svc", "sk-or-", "ya29.", "k10"}, regexp.MustCompile(
		`\b(?:sk-(?:ant|proj|svcacct|or)-[A-Za-z0-9_-]{20,}|ya29\.[A-Za-z0-9_-]{20,}|K10[0-9a-f]{64}::\S+)`)},
	{[]string{"mysql"}, regexp.MustCompile(`\bmysql[a-z]*\b[^|;\n]*? -p([^\s'"]+)`)},
	{[]string{"login "}, regexp.MustCompile(`\blogin [^|;\n]*?-p[ =]([^\s'"]+)`)},
	{[]string{"net user"}, regexp.MustCompile(`(?i)\bnet user +\S+ +(\S+) +/add`)},
	{[]string{"convertto-securestring"}, regexp.MustCompile(`(?i)convertto-securestring +(?:-string +)?['"]([^'"]+)`)},
	{[]string{"openssl passwd"}, regexp.MustCompile(`\bopenssl passwd +(?:-\S+ +)*([^\s'"-][^\s'"]*)`)},
	{[]string{"hooks."}, regexp.MustCompile(`https://hooks\.[a-z0-9.-]+/([A-Za-z0-9/_-]{20,})`)},
}

// find returns the secrets of a shape in s.
func (p *shape) find(s string) (found []span) {
	for _, m := range p.regexp.FindAllStringSubmatchIndex(s, -1) {
		at := span{m[0], m[1]}
		for i := 2; i < len(m); i += 2 {
			if m[i] >= 0 {
				at = span{m[i], m[i+1]}
				break
			}
		}
		switch value := s[at.from:at.to]; {
		case value == "", value == "git", placeholder.MatchString(value), isProse(value, true): // ssh://git@example.com
		default:
			found = append(found, at)
		}
	}
	return found
}

// The lengths of the parts of a bootstrap token, with which kubeadm joins a Node.
const (
	tokenID     = 6
	tokenSecret = 16
)

// tokens returns the bootstrap tokens in s, or only the first.
func tokens[T string | []byte](s T, first bool) (found []span) {
	for i := tokenID; i+tokenSecret < len(s); i++ {
		if s[i] != '.' {
			continue
		}
		at := span{i - tokenID, i + 1 + tokenSecret}
		if at.from > 0 && isTokenPart(s[at.from-1:at.from]) || at.to < len(s) && isTokenPart(s[at.to:at.to+1]) ||
			!isTokenPart(s[at.from:i]) || !isTokenPart(s[i+1:at.to]) || !isRandom(s[at.from:at.to]) {
			continue
		}
		if found = append(found, at); first {
			return found
		}
	}
	return found
}

func isTokenPart[T string | []byte](s T) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// isRandom reports whether a text is no word: it has a digit, or, as those that kubeadm makes, no vowel.
func isRandom[T string | []byte](s T) bool {
	return strings.ContainsAny(string(s), "0123456789") || !strings.ContainsAny(string(s), "aeiou")
}

// derKeys are the beginnings of private keys, and of files of keys, that are no text.
var derKeys = []struct {
	at    int
	begin []byte
}{
	{4, []byte("\x02\x01\x00\x30\x0d\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01")}, // PKCS#8, RSA
	{3, []byte("\x02\x01\x00\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01")},         // PKCS#8, EC, short
	{2, []byte("\x02\x01\x00\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01")},         // PKCS#8, EC
	{3, []byte("\x02\x01\x00\x30\x10\x06\x07\x2a\x86\x48\xce\x3d\x02\x01")},         // PKCS#8, P-384
	{4, []byte("\x02\x01\x00\x30\x10\x06\x07\x2a\x86\x48\xce\x3d\x02\x01")},         // PKCS#8, P-521
	{2, []byte("\x02\x01\x00\x30\x05\x06\x03\x2b\x65")},                             // PKCS#8, Ed25519 and X25519
	{4, []byte("\x02\x01\x00\x02\x82")},                                             // PKCS#1
	{3, []byte("\x02\x01\x00\x02\x81")},                                             // PKCS#1, short
	{2, []byte("\x02\x01\x01\x04\x20")},                                             // SEC 1
	{3, []byte("\x02\x01\x01\x04\x30")},                                             // SEC 1, P-384
	{3, []byte("\x02\x01\x01\x04\x42")},                                             // SEC 1, P-521
	{4, []byte("\x02\x01\x03\x30")},                                                 // PKCS#12
	{0, []byte("\xfe\xed\xfe\xed")},                                                 // of Java
	{0, []byte("openssh-key-v1\x00")},                                               //
	{4, []byte("\x30\x40\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x05\x0d\x30\x33\x30")}, // PKCS#8, encrypted
}

// isKey reports whether data is a private key, or a file of keys.
func isKey(data []byte) bool {
	for _, k := range derKeys {
		if len(data) > k.at && bytes.HasPrefix(data[k.at:], k.begin) && (k.at == 0 || data[0] == 0x30) {
			return true
		}
	}
	return false
}
