// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/core/webhooks/admission"
	"sigs.k8s.io/cluster-api/feature"

	"github.com/hookgate/hookgate/conformance"
)

// nested is a rule whose costs rise with the fourth power of the length of a list.
const nested = `"x-kubernetes-validations":[{"rule":"self.all(a, self.all(b, self.all(c, self.all(d, a + b + c + d != 'x'))))"}]`

// variables are what an extension may answer, one at a time, and whether Cluster API takes it.
var variables = map[string]struct {
	taken    bool
	variable string
}{
	"text":                         {true, `{"name":"a","required":true,"schema":{"openAPIV3Schema":{"type":"string","minLength":1,"default":"b"}}}`},
	"no name":                      {false, `{"schema":{"openAPIV3Schema":{"type":"string"}}}`},
	"builtin":                      {false, `{"name":"builtin","schema":{"openAPIV3Schema":{"type":"string"}}}`},
	"a dot":                        {false, `{"name":"a.b","schema":{"openAPIV3Schema":{"type":"string"}}}`},
	"not of DNS":                   {true, `{"name":"A_b/c","schema":{"openAPIV3Schema":{"type":"string"}}}`},
	"labels":                       {true, `{"name":"a","deprecatedV1Beta1Metadata":{"labels":{"a/b":"c"}},"schema":{"openAPIV3Schema":{"type":"string"}}}`},
	"wrong labels":                 {false, `{"name":"a","deprecatedV1Beta1Metadata":{"labels":{"a b":"c"}},"schema":{"openAPIV3Schema":{"type":"string"}}}`},
	"wrong annotations":            {false, `{"name":"a","deprecatedV1Beta1Metadata":{"annotations":{"a b":"c"}},"schema":{"openAPIV3Schema":{"type":"string"}}}`},
	"metadata of v1beta1":          {true, `{"name":"a","metadata":{"labels":{"a b":"c"}},"schema":{"openAPIV3Schema":{"type":"string"}}}`},
	"labels of the schema":         {true, of(`{"type":"object","x-metadata":{"labels":{"a":"b"}},"properties":{"p":{"type":"string","x-metadata":{"annotations":{"a":"any text"}}}}}`)},
	"wrong labels of the schema":   {false, of(`{"type":"string","x-metadata":{"labels":{"a":"no text"}}}`)},
	"wrong labels below":           {false, of(`{"type":"array","items":{"type":"string","x-metadata":{"labels":{"a":"no text"}}}}`)},
	"unknown type":                 {false, of(`{"type":"text"}`)},
	"no type":                      {false, of(`{}`)},
	"no type of a member":          {false, of(`{"type":"object","properties":{"b":{}}}`)},
	"null as the type":             {false, of(`{"type":"null"}`)},
	"both kinds of members":        {false, of(`{"type":"object","properties":{"b":{"type":"string"}},"additionalProperties":{"type":"string"}}`)},
	"unknown keyword":              {true, of(`{"type":"string","const":"a","title":"t","x-acme":1}`)},
	"nullable":                     {true, of(`{"type":"string","nullable":true}`)},
	"unique items":                 {true, of(`{"type":"array","items":{"type":"string"},"uniqueItems":false}`)},
	"really unique items":          {true, of(`{"type":"array","items":{"type":"string"},"uniqueItems":true}`)},
	"list without items":           {false, of(`{"type":"array"}`)},
	"false marks":                  {true, of(`{"type":"string","x-kubernetes-preserve-unknown-fields":false,"x-kubernetes-int-or-string":false}`)},
	"description in a junctor":     {true, of(`{"type":"object","properties":{"a":{"type":"string"}},"anyOf":[{"description":"one","required":["a"]}]}`)},
	"type in a junctor":            {false, of(`{"type":"object","properties":{"a":{"type":"string"}},"anyOf":[{"properties":{"a":{"type":"string"}}}]}`)},
	"default in a junctor":         {false, of(`{"type":"object","properties":{"a":{"type":"string"}},"anyOf":[{"properties":{"a":{"default":"b"}}}]}`)},
	"false mark in a junctor":      {true, of(`{"type":"object","properties":{"a":{"type":"string"}},"not":{"x-kubernetes-preserve-unknown-fields":false,"required":["b"]}}`)},
	"pattern":                      {false, of(`{"type":"string","pattern":"("}`)},
	"pattern in a junctor":         {false, of(`{"type":"string","allOf":[{"pattern":"("}]}`)},
	"format":                       {true, of(`{"type":"string","format":"of-acme"}`)},
	"null as the default":          {true, of(`{"type":"string","default":null}`)},
	"null as the example":          {true, of(`{"type":"string","example":null}`)},
	"null in the enum":             {true, of(`{"type":"string","enum":["a",null]}`)},
	"wrong default":                {false, of(`{"type":"integer","default":"three"}`)},
	"wrong default in a map":       {true, of(`{"type":"object","additionalProperties":{"type":"integer","default":"x"}}`)},
	"wrong default of a member":    {false, of(`{"type":"object","properties":{"a":{"type":"integer","default":"three"}}}`)},
	"default without a member":     {false, of(`{"type":"object","required":["a"],"properties":{"a":{"type":"integer","default":3}},"default":{}}`)},
	"default lacks a member":       {false, of(`{"type":"object","required":["a"],"properties":{"a":{"type":"integer"}},"default":{}}`)},
	"default with unknown members": {false, of(`{"type":"object","properties":{"a":{"type":"integer"}},"default":{"b":1}}`)},
	"example with unknown members": {true, of(`{"type":"object","properties":{"a":{"type":"integer"}},"example":{"b":1}}`)},
	"any members":                  {true, of(`{"type":"object","x-kubernetes-preserve-unknown-fields":true,"default":{"b":[null]}}`)},
	"wrong example":                {false, of(`{"type":"string","minLength":3,"example":"x"}`)},
	"wrong value of the enum":      {false, of(`{"type":"integer","maximum":2,"enum":[1,3]}`)},
	"wrong example in a junctor":   {false, of(`{"type":"integer","anyOf":[{"maximum":2,"enum":[3]}]}`)},
	"integer or text":              {true, of(`{"x-kubernetes-int-or-string":true,"default":"50%","example":5}`)},
	"fraction as the maximum":      {false, of(`{"type":"number","maximum":1.5}`)},

	"rule":                          {true, of(`{"type":"string","default":"aaa","x-kubernetes-validations":[{"rule":"self.size() < 9","message":"too long","reason":"FieldValueInvalid"}]}`)},
	"rule that does not compile":    {false, of(`{"type":"string","x-kubernetes-validations":[{"rule":"self.size( < 9"}]}`)},
	"rule of another type":          {false, of(`{"type":"object","properties":{"a":{"type":"string"}},"x-kubernetes-validations":[{"rule":"self.a < 9"}]}`)},
	"rule about no member":          {false, of(`{"type":"object","properties":{"a":{"type":"string"}},"x-kubernetes-validations":[{"rule":"self.b == 'c'"}]}`)},
	"rule that is no condition":     {false, of(`{"type":"string","x-kubernetes-validations":[{"rule":"self"}]}`)},
	"empty rule":                    {false, of(`{"type":"string","x-kubernetes-validations":[{"rule":" "}]}`)},
	"rule of two lines":             {false, of(`{"type":"string","x-kubernetes-validations":[{"rule":"self ==\n'a'"}]}`)},
	"rule of two lines with a text": {true, of(`{"type":"string","x-kubernetes-validations":[{"rule":"self ==\n'a'","message":"must be a"}]}`)},
	"message of two lines":          {false, of(`{"type":"string","x-kubernetes-validations":[{"rule":"self == 'a'","message":"must\nbe a"}]}`)},
	"blank message":                 {false, of(`{"type":"string","x-kubernetes-validations":[{"rule":"self == 'a'","message":" "}]}`)},
	"longest message":               {true, of(`{"type":"string","x-kubernetes-validations":[{"rule":"self == 'a'","message":"` + strings.Repeat("m", 2048) + `"}]}`)},
	"longer message":                {false, of(`{"type":"string","x-kubernetes-validations":[{"rule":"self == 'a'","message":"` + strings.Repeat("m", 2049) + `"}]}`)},
	"blank message expression":      {false, of(`{"type":"string","x-kubernetes-validations":[{"rule":"self == 'a'","messageExpression":" "}]}`)},
	"wrong message expression":      {false, of(`{"type":"string","x-kubernetes-validations":[{"rule":"self == 'a'","messageExpression":"1"}]}`)},
	"message expression":            {true, of(`{"type":"string","x-kubernetes-validations":[{"rule":"self == 'a'","messageExpression":"self + ' is not a'"}]}`)},
	"unknown reason":                {false, of(`{"type":"string","x-kubernetes-validations":[{"rule":"self == 'a'","reason":"Because"}]}`)},
	"path":                          {true, of(`{"type":"object","properties":{"a":{"type":"string"}},"x-kubernetes-validations":[{"rule":"self.a == 'b'","fieldPath":".a"}]}`)},
	"path to no member":             {false, of(`{"type":"object","properties":{"a":{"type":"string"}},"x-kubernetes-validations":[{"rule":"self.a == 'b'","fieldPath":".b"}]}`)},
	"value before":                  {true, of(`{"type":"string","x-kubernetes-validations":[{"rule":"self == oldSelf"}]}`)},
	"value before in a list":        {false, of(`{"type":"array","maxItems":3,"items":{"type":"string","x-kubernetes-validations":[{"rule":"self == oldSelf"}]}}`)},
	"costly rule":                   {false, of(`{"type":"object","properties":{"l":{"type":"array","items":{"type":"string"},` + nested + `}}}`)},
	"rule of a list at the root":    {false, of(`{"type":"array","maxItems":3,"items":{"type":"string","maxLength":3},"x-kubernetes-validations":[{"rule":"self.size() < 2"}]}`)},
	"bounded rule":                  {true, of(`{"type":"object","properties":{"l":{"type":"array","maxItems":3,"items":{"type":"string","maxLength":3},` + nested + `}}}`)},
	"default against a rule":        {false, of(`{"type":"string","default":"b","x-kubernetes-validations":[{"rule":"self == 'a'"}]}`)},
	"example against a rule":        {false, of(`{"type":"string","example":"b","x-kubernetes-validations":[{"rule":"self == 'a'"}]}`)},
	"enum against a rule":           {false, of(`{"type":"string","enum":["a","b"],"x-kubernetes-validations":[{"rule":"self == 'a'"}]}`)},
	"rule in a junctor":             {false, of(`{"type":"string","not":{"x-kubernetes-validations":[{"rule":"self == 'b'"}]}}`)},
}

func of(text string) string {
	return `{"name":"a","schema":{"openAPIV3Schema":` + text + `}}`
}

// TestVariables checks that the checks of the variables of an extension and Cluster API itself judge alike.
func TestVariables(t *testing.T) {
	if err := feature.MutableGates.Set("ClusterTopology=true"); err != nil {
		t.Fatal(err)
	}
	for name, tt := range variables {
		t.Run(name, func(t *testing.T) {
			if err := cluster(t, tt.variable); (err == nil) != tt.taken {
				t.Fatalf("Cluster API: got %v, want to be taken: %v", err, tt.taken)
			}
			report, err := conformance.Run(t.Context(), conformance.Target{URL: discovers(t, tt.variable)},
				conformance.Options{Only: []string{"variables", "answers.valid"}})
			if err != nil {
				t.Fatal(err)
			}
			if report.Conforms(false) != tt.taken {
				t.Errorf("the check says %v, and Cluster API %v: %+v", report.Conforms(false), tt.taken, report.Results)
			}
		})
	}
}

// cluster returns what Cluster API's webhook says about a variable of a ClusterClass, to which it applies the same
// rules.
func cluster(t *testing.T, variable string) error {
	t.Helper()
	class := &clusterv1.ClusterClass{}
	class.Spec.Variables = make([]clusterv1.ClusterClassVariable, 1)
	if err := json.Unmarshal([]byte(variable), &class.Spec.Variables[0]); err != nil {
		return err
	}
	_, err := (&admission.ClusterClass{}).ValidateCreate(t.Context(), class)
	if err == nil {
		return nil
	}
	var invalid *apierrors.StatusError
	if !errors.As(err, &invalid) || invalid.ErrStatus.Details == nil {
		t.Fatalf("another error: %v", err)
	}
	for _, c := range invalid.ErrStatus.Details.Causes {
		if strings.HasPrefix(c.Field, "spec.variables") {
			return fmt.Errorf("%s: %s", c.Field, c.Message)
		}
	}
	return nil
}

// discovers serves an extension that has one variable, and returns its URL.
func discovers(t *testing.T, variable string) string {
	t.Helper()
	const version = "hooks.runtime.cluster.x-k8s.io/v1alpha1"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/discovery"):
			fmt.Fprintf(w, `{"status":"Success","handlers":[{"name":"a","requestHook":{"apiVersion":%q,"hook":"DiscoverVariables"}}]}`, version)
		case strings.HasSuffix(r.URL.Path, "/discovervariables/a"):
			fmt.Fprintf(w, `{"status":"Success","variables":[%s]}`, variable)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}
