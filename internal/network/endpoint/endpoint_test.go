// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var all = []string{HTTPS, HTTP, GRPCS, GRPC, Unix}

func TestParse(t *testing.T) {
	for url, want := range map[string]Endpoint{
		"https://a.b":            {HTTPS, "tcp", "a.b:443", "a.b", "a.b", "", ""},
		"https://a.b:9443":       {HTTPS, "tcp", "a.b:9443", "a.b:9443", "a.b", "9443", ""},
		"HTTPS://a.b/":           {HTTPS, "tcp", "a.b:443", "a.b", "a.b", "", ""},
		"https://a.b/c//d/":      {HTTPS, "tcp", "a.b:443", "a.b", "a.b", "", "/c/d"},
		"https://a.b/c%20d":      {HTTPS, "tcp", "a.b:443", "a.b", "a.b", "", "/c d"},
		"https://[::1]":          {HTTPS, "tcp", "[::1]:443", "[::1]", "::1", "", ""},
		"https://[::1]:1":        {HTTPS, "tcp", "[::1]:1", "[::1]:1", "::1", "1", ""},
		"http://127.0.0.1":       {HTTP, "tcp", "127.0.0.1:80", "127.0.0.1", "127.0.0.1", "", ""},
		"grpcs://a":              {GRPCS, "tcp", "a:443", "a", "a", "", ""},
		"grpcs://a:65535/":       {GRPCS, "tcp", "a:65535", "a:65535", "a", "65535", ""},
		"grpc://a":               {GRPC, "tcp", "a", "a", "a", "", ""},
		"grpc://a:1":             {GRPC, "tcp", "a:1", "a:1", "a", "1", ""},
		"unix:///run/a%20b.sock": {Unix, "unix", "/run/a b.sock", "localhost", "localhost", "", ""},
	} {
		got, err := Parse(url, all...)
		if err != nil {
			t.Errorf("%s: %v", url, err)
		} else if diff := cmp.Diff(want, *got); diff != "" {
			t.Errorf("%s: -want +got\n%s", url, diff)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for url, want := range map[string]string{
		"":                   "must not be empty",
		"a.b:1":              "must begin with https://, http://, grpcs://, grpc://, unix://, not with \"a.b\"",
		"127.0.0.1:1":        "must begin with https://, http://, grpcs://, grpc://, unix://",
		"ftp://a":            "must begin with https://, http://, grpcs://, grpc://, unix://, not with \"ftp\"",
		"https://a b":        "is not a URL: invalid character",
		"https://u:p@a":      "must not have a user",
		"https://a?":         "must not have a query",
		"https://a?b=c":      "must not have a query",
		"https://a#":         "must not have a fragment",
		"https://a#b":        "must not have a fragment",
		"https://":           "must have a host",
		"https://:1":         "must have a host",
		"https:a":            "must have a host",
		"https://a:0":        "port 0 is not between 1 and 65535",
		"https://a:65536":    "port 65536 is not between 1 and 65535",
		"grpcs://a:1/b":      "must not have a path",
		"unix:///a.sock?b":   "must not have a query",
		"unix:run/a.sock":    "the absolute path of a socket",
		"unix://run/a.sock":  "the absolute path of a socket",
		"unix:///":           "the absolute path of a socket",
		"unix://":            "must be unix:// and the absolute path of a socket, for example unix:///run/extension.sock",
		"https://u:p@a?b#c":  "must not have a user",
		"https://a/b?c#d":    "must not have a query",
		"https://u:p@a b":    "is not a URL: ",
		"https://u:p@a\x7f":  "is not a URL: check the host, and leave out the user",
		"https://u:p@a/%zz":  "is not a URL: check the host, and leave out the user",
		"https://u:p@a:port": "is not a URL: check the host, and leave out the user",
	} {
		_, err := Parse(url, all...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", url, err, want)
		} else if strings.Contains(err.Error(), "u:p") {
			t.Errorf("%q: the error %q has the password in it", url, err)
		}
	}
	if _, err := Parse("http://a", HTTPS, GRPC); err == nil || err.Error() != `must begin with https://, grpc://, not with "http"` {
		t.Errorf("a scheme that is not wanted: %v", err)
	}
}

// An endpoint is local by its URL alone, and only loopback is.
func TestIsLocal(t *testing.T) {
	for url, want := range map[string]bool{
		"http://127.0.0.1": true, "http://127.255.255.255": true, "http://[::1]": true, "http://localhost": true, "unix:///a": true,
		"http://128.0.0.1": false, "http://126.255.255.255": false, "http://[::2]": false, "http://0.0.0.0": false,
		"http://localhost.example": false, "http://10.0.0.1": false,
	} {
		e, err := Parse(url, all...)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.IsLocal(); got != want {
			t.Errorf("%s: got %t, want %t", url, got, want)
		}
	}
}

// A path that is too long for a socket is an error here, and not one of the system when it is dialled.
func TestParseLongSocket(t *testing.T) {
	longest := "unix:///" + strings.Repeat("a", socketBytes-1)
	if _, err := Parse(longest, Unix); err != nil {
		t.Errorf("the longest: %v", err)
	}
	if _, err := Parse(longest+"a", Unix); err == nil || !strings.Contains(err.Error(), "must have a path of at most 107 bytes") {
		t.Errorf("one byte more: %v", err)
	}
}
