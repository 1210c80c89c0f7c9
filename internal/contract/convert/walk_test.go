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

	"github.com/hookgate/hookgate/internal/contract/jsonpatch"
)

// Decoding agrees with encoding/json, also for texts that Cluster API would not write, and although each member of an
// object is decoded by itself.
func TestDecodesAsEncodingJSON(t *testing.T) {
	for name, text := range map[string]string{
		"empty":              `{}`,
		"white space":        " {\n\t\"spec\" : { \"paused\" :\rtrue } , \"status\" : { } } ",
		"a member twice":     `{"spec":{"paused":true},"spec":{"paused":false}}`,
		"an object twice":    `{"spec":{"topology":{"class":"a"},"paused":true},"spec":{"topology":{"version":"b"}}}`,
		"a key twice":        `{"status":{"failureDomains":{"a":{"controlPlane":true},"a":{"attributes":{"c":"1","c":"2"}}}}}`,
		"null after a value": `{"spec":{"topology":{"class":"a"},"topology":null}}`,
		"null in a list":     `{"spec":{"clusterNetwork":{"pods":{"cidrBlocks":["a",null,""]}}}}`,
		"escapes":            `{"sp\u0065c":{"controlPlaneEndpoint":{"host":"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00\u0000"}}}`,
		"not UTF-8":          "{\"spec\":{\"controlPlaneEndpoint\":{\"host\":\"a\xff\xfeb\xc3\"}},\"status\":{\"phase\":\"\\n\xff\"}}",
		"raw values":         `{"spec":{"topology":{"variables":[{"name":"a","value": {"b" : 1e400} },{"name":"c","value":null},{"name":"d","value":"\ud83d"}]}}}`,
		"times":              `{"status":{"conditions":[{"type":"a","lastTransitionTime":"2026-01-01T00:00:00+01:00"},{"lastTransitionTime":null}]}}`,
		"durations":          `{"spec":{"topology":{"controlPlane":{"nodeDrainTimeout":"1.5\u006ds","nodeDeletionTimeout":"-1h","nodeVolumeDetachTimeout":null}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			var want clusterv1beta1.Cluster
			if err := json.Unmarshal([]byte(text), &want); err != nil {
				t.Fatal(err)
			}
			got, err := decodeObject([]byte(text), reflect.TypeFor[clusterv1beta1.Cluster](), &jsonpatch.Meter{})
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

// The error of a value that does not fit has its place, and says what is wanted there.
func TestMismatches(t *testing.T) {
	for text, want := range map[string]string{
		`{"spec":[]}`: "spec is not an object",
		`{"spec":{"clusterNetwork":{"pods":{"cidrBlocks":"a"}}}}`:                             "spec.clusterNetwork.pods.cidrBlocks is not a list",
		`{"spec":{"clusterNetwork":{"pods":{"cidrBlocks":["a",1]}}}}`:                         "spec.clusterNetwork.pods.cidrBlocks[*] is not a string",
		`{"status":{"failureDomains":[]}}`:                                                    "status.failureDomains is not an object",
		`{"status":{"failureDomains":{"a":{"controlPlane":0}}}}`:                              "status.failureDomains[*].controlPlane is not true or false",
		`{"spec":{"controlPlaneEndpoint":{"port":"1"}}}`:                                      "spec.controlPlaneEndpoint.port is not a number",
		`{"spec":{"controlPlaneEndpoint":{"port":-1.5}}}`:                                     "spec.controlPlaneEndpoint.port is not a 32-bit integer",
		`{"status":{"conditions":[{},{"lastTransitionTime":"now"}]}}`:                         "status.conditions[*].lastTransitionTime is not a time like 2006-01-02T15:04:05Z",
		`{"spec":{"topology":{"controlPlane":{"nodeDrainTimeout":"1"}}}}`:                     "spec.topology.controlPlane.nodeDrainTimeout is not a duration like 5m0s",
		`{"spec":{"topology":{"controlPlane":{"machineHealthCheck":{"maxUnhealthy":true}}}}}`: "spec.topology.controlPlane.machineHealthCheck.maxUnhealthy is not a whole number or a string",
	} {
		_, err := decodeObject([]byte(text), reflect.TypeFor[clusterv1beta1.Cluster](), &jsonpatch.Meter{})
		if err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}
