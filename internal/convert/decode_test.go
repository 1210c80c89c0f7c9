// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// Decoding agrees with encoding/json, also for texts that Cluster API would not write.
func TestDecodesAsEncodingJSON(t *testing.T) {
	for name, text := range map[string]string{
		"empty":              `{}`,
		"white space":        " {\n\t\"spec\" : { \"paused\" :\rtrue } , \"status\" : { } } ",
		"a member twice":     `{"spec":{"paused":true},"spec":{"paused":false}}`,
		"an object twice":    `{"spec":{"topology":{"class":"a"},"paused":true},"spec":{"topology":{"version":"b"}}}`,
		"a map twice":        `{"status":{"failureDomains":{"a":{"controlPlane":true}},"failureDomains":{"b":{}}}}`,
		"a key twice":        `{"status":{"failureDomains":{"a":{"controlPlane":true},"a":{"attributes":{"c":"1","c":"2"}}}}}`,
		"null after a value": `{"spec":{"topology":{"class":"a"},"topology":null}}`,
		"null in a list":     `{"spec":{"clusterNetwork":{"pods":{"cidrBlocks":["a",null,""]}}}}`,
		"null in a map":      `{"status":{"failureDomains":{"a":null,"b":{"attributes":{"c":null}}}}}`,
		"empty containers":   `{"spec":{"clusterNetwork":{"pods":{"cidrBlocks":[]}},"topology":{"workers":{}}},"status":{"failureDomains":{},"conditions":[]}}`,
		"escapes":            `{"sp\u0065c":{"controlPlaneEndpoint":{"host":"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00\u0000"}}}`,
		"half surrogates":    `{"spec":{"controlPlaneEndpoint":{"host":"\ud83d"}},"status":{"phase":"\ude00\ud83dx\ud83d\u0041\ud83d\ud83d\ude00"}}`,
		"not UTF-8":          "{\"spec\":{\"controlPlaneEndpoint\":{\"host\":\"a\xff\xfeb\xc3\"}},\"status\":{\"phase\":\"\\n\xff\"}}",
		"keys":               `{"status":{"failureDomains":{"\u0061":{},"":{},"\ud83d":{},"é":{}}}}`,
		"raw values":         `{"spec":{"topology":{"variables":[{"name":"a","value": {"b" : 1e400} },{"name":"c","value":null},{"name":"d","value":"\ud83d"}]}}}`,
		"numbers":            `{"spec":{"controlPlaneEndpoint":{"port":-0}},"status":{"observedGeneration":-9223372036854775808}}`,
		"times":              `{"status":{"conditions":[{"type":"a","lastTransitionTime":"2026-01-01T00:00:00+01:00"},{"lastTransitionTime":null}]}}`,
		"escapes in a time":  `{"status":{"conditions":[{"lastTransitionTime":"2026-01-01T00:00:00\u005a"}]}}`,
		"durations":          `{"spec":{"topology":{"controlPlane":{"nodeDrainTimeout":"1.5\u006ds","nodeDeletionTimeout":"-1h","nodeVolumeDetachTimeout":null}}}}`,
		"long strings":       `{"spec":{"controlPlaneEndpoint":{"host":"0123456789abcdef0123456789abcde\n"},"topology":{"class":"` + strings.Repeat("é", 100) + `"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			var want clusterv1beta1.Cluster
			if err := json.Unmarshal([]byte(text), &want); err != nil {
				t.Fatal(err)
			}
			got, err := decodeObject([]byte(text), reflect.TypeFor[clusterv1beta1.Cluster](), &meter{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&want, got.value); diff != "" {
				t.Errorf("%s (-encoding/json +convert):\n%s", text, diff)
			}
		})
	}
}

// A name chosen by a caller is part of a path only if it is short and plain.
func TestNamesInPaths(t *testing.T) {
	long := strings.Repeat("a", 64)
	for name, want := range map[string]string{
		"aZ09-_/$": "aZ09-_/$", long: long, long + "a": "[*]", "": "[*]", "a b": "[*]", "a.b": "[*]", "é": "[*]", "a\n": "[*]",
		"@": "[*]", "`": "[*]", "{": "[*]", ":": "[*]",
	} {
		if got := (member{name: name}).lossOf(); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
		if got := (member{path: []step{{name: "spec", index: isMember}, {index: 3}, {name: "key", index: isKey}}, name: name}).lossOf(); got != "spec[*][*]."+want {
			t.Errorf("%q: got %q", name, got)
		}
	}
}
