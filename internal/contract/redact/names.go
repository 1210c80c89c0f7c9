// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"encoding/base64"
	"regexp"
	"slices"
	"strings"
)

// secretNames are the ends of names whose values are secrets, in lower case and without separators, by their last
// letter.
var secretNames = func() (by [256][]string) {
	for _, name := range []string{
		"password", "passwords", "passwd", "pwd", "passphrase", "passcode", "token", "tokens", "secret", "secrets",
		"apikey", "apikeys", "accesskey", "accesskeys", "secretkey", "secretkeys", "privatekey", "privatekeys",
		"encryptionkey", "encryptionkeys", "decryptionkey", "certificatekey", "clientkey", "clientkeydata", "signingkey",
		"masterkey", "sharedkey", "accountkey", "storagekey", "authkey", "sessionkey", "presharedkey", "hmackey", "psk",
		"appkey", "rootkey", "deploykey", "licensekey", "clientcertificatedata", "credential", "credentials",
		"authorization", "cookie", "connectionstring", "dockerconfigjson", "dockercfg", "tlskey", "secretid",
		"xamzsignature", "xgoogsignature", "xamzsecuritytoken", "passwordhash", "secretaccess", "authtok", "secretvalue",
		"serviceaccountkey", "serviceaccountjson", "tokendata", "passworddata", "secretdata",
	} {
		last := name[len(name)-1]
		by[last] = append(by[last], name)
	}
	return by
}()

// wholeNames are names whose values are secrets, and which occur in others that are not.
var wholeNames = []string{"pass", "pw", "chpasswd"}

// harmlessNames are the ends of names that end like those of secrets.
var harmlessNames = []string{
	"pullsecret", "pullsecrets", "existingsecret", "nopasswd", "lockpasswd", "publickeytoken", "maxtokens", "httptokens",
}

// longestName is how much of a name is looked at.
const longestName = 64

// isSecretName reports whether a text is a secret because of the name of its member, variable, flag or header,
// whichever way its words are joined.
func isSecretName[T string | []byte](name T) bool {
	if len(name) < len("pw") {
		return false
	}
	last := fold(name[len(name)-1])
	if secretNames[last] == nil && last != 's' && last != 'w' && last >= 'a' && last <= 'z' {
		return false
	}
	var end [longestName]byte // of the name, in lower case and without separators
	n := len(end)
	for i := len(name) - 1; i >= 0 && n > 0; i-- {
		switch c := name[i]; c {
		case '-', '_', '.', ' ', '*':
		default:
			n--
			end[n] = fold(c)
		}
	}
	plain := string(end[n:])
	if plain == "" {
		return false
	}
	ends := func(s string) bool { return strings.HasSuffix(plain, s) }
	return (slices.ContainsFunc(secretNames[plain[len(plain)-1]], ends) || slices.Contains(wholeNames, plain) ||
		ends("pass") && passWord.MatchString(string(name))) && !slices.ContainsFunc(harmlessNames, ends)
}

// passWord is a name of which pass is a word of its own: bypass has another meaning.
var passWord = regexp.MustCompile(
	`(?:[a-z0-9]Pass|[_.-](?i:pass)|^(?:PG|DB|MYSQL|MONGO|REDIS|SMTP|FTP|ROOT|ADMIN|USER)PASS)$`)

// isBasic reports whether a text is a name and a password in base64, as the member auth has them in the configuration
// of Docker.
func isBasic(s string) bool {
	data, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(s, "="))
	return err == nil && len(data) > 0 && isText(data) && bytes.IndexByte(data, ':') > 0
}

// isAuth reports whether a name is that of such a text.
func isAuth[T string | []byte](name T) bool { return string(name) == "auth" || string(name) == "_auth" }

// isSecretPath reports whether the last name of a path in a patch, or in a file system, is that of a secret.
func isSecretPath(path string) bool {
	segments := strings.Split(strings.TrimRight(path, "/"), "/")
	last := segments[len(segments)-1]
	if len(segments) > 1 && (last == "-" || strings.Trim(last, "0123456789") == "") { // of a list
		segments = segments[:len(segments)-1]
		last = segments[len(segments)-1]
	}
	if slices.Contains(segments[:len(segments)-1], "stringData") {
		return true
	}
	switch path { // it has a list of users, and of where they come from
	case "/etc/passwd", "/etc/pam.d/passwd":
		return false
	}
	return isSecretName(last) || secretFile.MatchString(last)
}

// secretFile is the name of a file all of whose content is a secret.
var secretFile = regexp.MustCompile(
	`^(?:g?shadow-?|\.?pgpass|[._]netrc|\.?htpasswd|\.my\.cnf|\.git-credentials|\.vault-token|` +
		`id_(?:rsa|dsa|ecdsa|ed25519)|ssh_host_[a-z0-9]+_key|.+\.(?:key|jks|p12|pfx|keytab|ppk|kdbx))$`)

// placeholder is what stands for a value, and is none, or has been removed already.
var placeholder = regexp.MustCompile(`^(?i:\*+|true|false|null|nil|none|undefined|~|yes|no|on|off|-|…|\.{2,}|` +
	`string|object|array|integer|boolean|number|` +
	`\[?(?:removed|redacted|hidden|masked|omitted)\]?|<[a-z][a-z0-9 _.-]*>|\$\{[^}]*\}?|\$\([^)]*\)?|\{\{.*|` +
	`%[a-z]|%[a-z_]+%)$|^\$[A-Z_][A-Z0-9_]*$|^arn:aws[a-z-]*:[a-z0-9-]+:[a-z0-9-]*:\d*:[\w+=,.@/:-]+$`)

// verdicts are words with which a text goes on that says something about a secret, and does not tell it.
var verdicts = words(`must is isn't was wasn't has hasn't had have are aren't were cannot can can't could may might
	should shall will won't would does doesn't did didn't not no required invalid missing expired unknown
	unsupported forbidden too duplicate failed error expected unexpected want wants need
	needs got empty never already only
	neither unable
	unauthorized denied rejected revoked malformed incorrect wrong bad optional immutable deprecated ignored unset`)

// fillers are other words with which prose goes on.
var fillers = words(`a an the this that these those it its it's and or but if in into of off on at by for from to with
	without as so than then there when where which who while how what why you your we our they their please see use using
	used set add create give specify provide check try ask read write make let do don't one two all any some each every
	both either more most other another new old same such be been being after before until because since about above
	below between through during under over again once here just also very still yet name value file path string field
	file-based found none nothing something anything`)

// states are words that say all about a secret by themselves.
var states = words(`required invalid missing expired unknown unsupported forbidden duplicate failed error expected
	unexpected empty unauthorized denied rejected revoked malformed incorrect wrong optional immutable deprecated ignored
	unset ok valid present absent found set string boolean integer number object array bytes not-found enabled disabled
	rotated renewed created deleted updated unchanged configured verified bearer basic digest negotiate`)

func words(s string) map[string]bool {
	all := map[string]bool{}
	for w := range strings.FieldsSeq(s) {
		all[w] = true
	}
	return all
}

// isProse reports whether a text behind the name of a secret and a colon says something about the secret. loose allows
// more beginnings of it: those of a message, which no file has.
func isProse(s string, loose bool) bool {
	first, rest, more := strings.Cut(strings.TrimSpace(s), " ")
	word := strings.ToLower(strings.TrimRight(first, ",.;:!)"))
	if !more || strings.TrimSpace(rest) == "" {
		return states[word]
	}
	return verdicts[word] || loose && fillers[word]
}
