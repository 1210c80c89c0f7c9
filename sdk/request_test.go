// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	hooks "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/sdk"
)

func TestLoad(t *testing.T) {
	raw := func(text string) *hooks.RawExtension { return &hooks.RawExtension{Raw: []byte(text)} }
	update := &hooks.CanUpdateMachineRequest{Current: &hooks.CanUpdateMachineRequestObjects{Machine: raw(` {"n": 9007199254740993} `)}}
	templates := &generate{Items: []*hooks.GeneratePatchesRequestItem{item("1", `{"n":1}`)}, Variables: []*hooks.Variable{variable("v", `{"n":2}`)}}
	for name, tt := range map[string]struct {
		in   proto.Message
		path string
		want string
		code codes.Code
	}{
		"nested":          {update, "current.machine", "9007199254740993", codes.OK},
		"element":         {templates, "items[0].object", "1", codes.OK},
		"value":           {templates, "variables[0].value", "2", codes.OK},
		"absent":          {update, "desired.machine", "desired.machine: want a JSON object", codes.InvalidArgument},
		"null":            {&upgrade{Cluster: raw("null")}, "cluster", "cluster: want a JSON object", codes.InvalidArgument},
		"another type":    {&upgrade{Cluster: raw(`{"n":"x"}`)}, "cluster", "cluster: json: invalid number literal, trying to unmarshal \"\\\"x\\\"\" into Number", codes.InvalidArgument},
		"no such element": {templates, "items[1].object", "items[1].object: the request has no such element", codes.InvalidArgument},
		"no such member":  {update, "machine", `path "machine": CanUpdateMachineRequest has no member machine that is an object`, codes.Unknown},
		"name of the proto": {
			update, "current.infrastructure_machine",
			`path "current.infrastructure_machine": CanUpdateMachineRequestObjects has no member infrastructure_machine that is an object`, codes.Unknown,
		},
		"not down to JSON":   {update, "current", `path "current": the field does not hold JSON`, codes.Unknown},
		"a list":             {templates, "items", `path "items": the field does not hold JSON`, codes.Unknown},
		"without an index":   {templates, "items.object", `path "items.object": the list before object needs an index`, codes.Unknown},
		"index of no list":   {update, "current[0]", `path "current[0]": the value before [0] is not a list`, codes.Unknown},
		"no path":            {update, "", `path "": want names and indexes like items[0].object`, codes.Unknown},
		"index out of range": {templates, "items[9999999999].object", `path "items[9999999999].object": want names and indexes like items[0].object`, codes.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			var out struct{ N json.Number }
			err := sdk.Load(tt.in, tt.path, &out)
			got := out.N.String()
			if err != nil {
				got = err.Error()
			}
			if status.Code(err) == codes.InvalidArgument {
				got = status.Convert(err).Message()
			}
			if got != tt.want || status.Code(err) != tt.code {
				t.Errorf("got %s: %s\nwant %s: %s", status.Code(err), got, tt.code, tt.want)
			}
		})
	}
	var free any
	if err := sdk.Load(update, "current.machine", &free); err != nil || fmt.Sprint(free) != "map[n:9007199254740993]" {
		t.Errorf("into an any: %v, %v", free, err)
	}
}

func TestSetting(t *testing.T) {
	in := &upgrade{Settings: map[string]string{
		"text": " x", "integer": "-7", "large": "9223372036854775808", "number": "1.5e3", "nan": "NaN", "hex": "0x10", "yes": "true", "one": "1", "empty": "",
	}}
	type result struct {
		value any
		err   error
	}
	get := func(value any, err error) result { return result{value, err} }
	for name, tt := range map[string]struct {
		got  result
		want string
	}{
		"text":             {get(sdk.Setting[string](in, "text")), `" x"`},
		"empty":            {get(sdk.Setting(in, "empty", "default")), `""`},
		"integer":          {get(sdk.Setting[int](in, "integer")), `-7`},
		"int64":            {get(sdk.Setting[int64](in, "integer")), `-7`},
		"number":           {get(sdk.Setting[float64](in, "number")), `1500`},
		"bool":             {get(sdk.Setting(in, "yes", false)), `true`},
		"default":          {get(sdk.Setting(in, "missing", 3)), `3`},
		"missing":          {get(sdk.Setting[int](in, "missing")), `setting "missing" is not set`},
		"no integer":       {get(sdk.Setting(in, "number", 3)), `setting "number": want an integer`},
		"too large":        {get(sdk.Setting[int](in, "large")), `setting "large": want an integer`},
		"empty as integer": {get(sdk.Setting[int](in, "empty")), `setting "empty": want an integer`},
		"NaN":              {get(sdk.Setting[float64](in, "nan")), `setting "nan": want a number`},
		"hexadecimal":      {get(sdk.Setting[float64](in, "hex")), `setting "hex": want a number`},
		"1 as bool":        {get(sdk.Setting[bool](in, "one")), `setting "one": want true or false`},
		"no settings":      {get(sdk.Setting[int](&hooks.DiscoveryRequest{}, "a")), `setting "a" is not set`},
	} {
		t.Run(name, func(t *testing.T) {
			got := fmt.Sprintf("%#v", tt.got.value)
			if tt.got.err != nil {
				got = tt.got.err.Error()
			}
			if got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func variable(name, value string) *hooks.Variable {
	return &hooks.Variable{Name: name, Value: &hooks.JSON{Raw: []byte(value)}}
}

func TestVariable(t *testing.T) {
	in := &generate{
		Variables: []*hooks.Variable{
			variable("repository", `"global"`), variable("n", `9007199254740993`), variable("null", `null`), variable("bad", `{`),
			variable("proxy", `{"noProxy":["a","b"],"deep":[[1,2]],"ratio":1.5}`), variable("twice", `1`), variable("twice", `2`),
			variable("builtin", `{"cluster":{"name":"c1","topology":{"version":"v1.36.1"}}}`),
		},
		Items: []*hooks.GeneratePatchesRequestItem{item("1", `{}`, variable("repository", `"own"`),
			variable("builtin", `{"cluster":{"topology":{"class":"k"}},"controlPlane":{"version":"v1.36.2"}}`))},
	}
	type result struct {
		value any
		err   error
	}
	get := func(value any, err error) result { return result{value, err} }
	for i := range sdk.NewPatches(in).Items(sdk.Match{}) {
		for name, tt := range map[string]struct {
			got  result
			want string
		}{
			"the item's wins":         {get(sdk.Variable[string](i, "repository")), `own`},
			"the last wins":           {get(sdk.Variable[int](i, "twice")), `2`},
			"default":                 {get(sdk.Variable(i, "missing", "d")), `d`},
			"large integer":           {get(sdk.Variable[int64](i, "n")), `9007199254740993`},
			"as it is":                {get(sdk.Variable[any](i, "n")), `9007199254740993`},
			"element":                 {get(sdk.Variable[string](i, "proxy.noProxy[1]")), `b`},
			"element of element":      {get(sdk.Variable[int](i, "proxy.deep[0][1]")), `2`},
			"list":                    {get(sdk.Variable[[]string](i, "proxy.noProxy")), `[a b]`},
			"number":                  {get(sdk.Variable[float64](i, "n")), `9.007199254740992e+15`},
			"object":                  {get(sdk.Variable[struct{ Ratio float64 }](i, "proxy")), `{1.5}`},
			"builtin of the item":     {get(sdk.Variable[string](i, "builtin.controlPlane.version")), `v1.36.2`},
			"builtin of the request":  {get(sdk.Variable[string](i, "builtin.cluster.name")), `c1`},
			"builtin of both, deeper": {get(sdk.Variable[map[string]string](i, "builtin.cluster.topology")), `map[class:k version:v1.36.1]`},
			"missing":                 {get(sdk.Variable[string](i, "missing")), `variable "missing" is not set`},
			"missing member":          {get(sdk.Variable[string](i, "proxy.httpProxy")), `variable "proxy.httpProxy" is not set`},
			"member of a text":        {get(sdk.Variable(i, "repository.x", "d")), `d`},
			"missing element":         {get(sdk.Variable(i, "proxy.noProxy[2]", "d")), `d`},
			"index of an object":      {get(sdk.Variable(i, "proxy[0]", "d")), `variable "proxy" is not a list`},
			"no string":               {get(sdk.Variable(i, "n", "d")), `variable "n" is not a string`},
			"no integer":              {get(sdk.Variable[int](i, "proxy.ratio")), `variable "proxy.ratio" is not an integer`},
			"no boolean":              {get(sdk.Variable[bool](i, "repository")), `variable "repository" is not a boolean`},
			"no list":                 {get(sdk.Variable[[]string](i, "repository")), `variable "repository" is not a list`},
			"null":                    {get(sdk.Variable[string](i, "null")), `variable "null" is not a string`},
			"not JSON":                {get(sdk.Variable[string](i, "bad")), `rpc error: code = InvalidArgument desc = variable "bad": the JSON ends early`},
			"no path":                 {get(sdk.Variable[string](i, "proxy..x")), `path "proxy..x": want names and indexes like items[0].object`},
		} {
			t.Run(name, func(t *testing.T) {
				got := fmt.Sprint(tt.got.value)
				if tt.got.err != nil {
					got = tt.got.err.Error()
				}
				if got != tt.want {
					t.Errorf("got %s, want %s", got, tt.want)
				}
			})
		}
	}
}
