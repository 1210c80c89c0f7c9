// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package variables

import (
	"strings"
	"testing"

	"github.com/hookgate/hookgate/infrastructure/parameters"
)

// Why only one of both takes a schema.
const (
	dropped        = "Cluster API's type of schemas has no such member: it drops what the API server refuses or obeys"
	absent         = "Cluster API does not look at descriptions and marks that are false, which the API server refuses in places"
	clusterAPIs    = "x-metadata is Cluster API's own, and no member of the API server's schemas"
	examplesMatter = "Cluster API checks examples and enums, which the API server takes as they are"
	alone          = "parameters are checked without those before them, so that there is no old value"
	bounded        = "the schemas of parameters stay in the gateway's memory, which has limits"
)

// judgedSchemas are schemas of a member of variables and of parameters, and which of them take it. Those of variables are
// judged as Cluster API's webhook judges a ClusterClass (test/extra/conversion compares the two), those of parameters as
// the API server judges a definition. The reason says why they differ.
var judgedSchemas = map[string]struct {
	schema              string
	variable, parameter bool
	reason              string
}{
	"text":                   {`{"type":"string","minLength":1,"maxLength":9,"pattern":"^a+$","default":"aa"}`, true, true, ""},
	"number within":          {`{"type":"number","minimum":0,"maximum":1,"exclusiveMaximum":true,"default":0.5}`, true, true, ""},
	"enum":                   {`{"type":"string","enum":["a","b"],"default":"b"}`, true, true, ""},
	"format":                 {`{"type":"string","format":"ipv4","default":"10.0.0.1"}`, true, true, ""},
	"unknown format":         {`{"type":"string","format":"acme","default":"x"}`, true, true, ""},
	"list":                   {`{"type":"array","maxItems":2,"items":{"type":"integer"},"default":[1]}`, true, true, ""},
	"map":                    {`{"type":"object","additionalProperties":{"type":"string"},"default":{"a":"b"}}`, true, true, ""},
	"open object":            {`{"type":"object","x-kubernetes-preserve-unknown-fields":true,"default":{"a":1}}`, true, true, ""},
	"integer or text":        {`{"x-kubernetes-int-or-string":true,"default":"50%"}`, true, true, ""},
	"either":                 {`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"oneOf":[{"required":["a"]},{"required":["b"]}]}`, true, true, ""},
	"rule":                   {`{"type":"string","maxLength":9,"x-kubernetes-validations":[{"rule":"self.startsWith('a')","message":"begin with a","reason":"FieldValueInvalid"}]}`, true, true, ""},
	"message of a rule":      {`{"type":"string","maxLength":9,"x-kubernetes-validations":[{"rule":"self == ''","messageExpression":"'not ' + self"}]}`, true, true, ""},
	"described":              {`{"type":"string","description":"a text"}`, true, true, ""},
	"unknown type":           {`{"type":"text"}`, false, false, ""},
	"no type":                {`{}`, false, false, ""},
	"properties and map":     {`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":{"type":"string"}}`, false, false, ""},
	"list without items":     {`{"type":"array"}`, false, false, ""},
	"pattern":                {`{"type":"string","pattern":"("}`, false, false, ""},
	"default of type":        {`{"type":"integer","default":"three"}`, false, false, ""},
	"default of enum":        {`{"type":"string","enum":["a"],"default":"b"}`, false, false, ""},
	"default of pattern":     {`{"type":"string","pattern":"^a$","default":"b"}`, false, false, ""},
	"default not known":      {`{"type":"object","properties":{"a":{"type":"string"}},"default":{"b":1}}`, false, false, ""},
	"default against rule":   {`{"type":"string","maxLength":9,"default":"b","x-kubernetes-validations":[{"rule":"self == 'a'"}]}`, false, false, ""},
	"rule that fails":        {`{"type":"string","x-kubernetes-validations":[{"rule":"self +"}]}`, false, false, ""},
	"rule that is no test":   {`{"type":"string","x-kubernetes-validations":[{"rule":"self"}]}`, false, false, ""},
	"rule of other members":  {`{"type":"object","properties":{"a":{"type":"string"}},"x-kubernetes-validations":[{"rule":"self.b == 'x'"}]}`, false, false, ""},
	"empty rule":             {`{"type":"string","x-kubernetes-validations":[{"rule":" "}]}`, false, false, ""},
	"unknown reason":         {`{"type":"string","x-kubernetes-validations":[{"rule":"true","reason":"Because"}]}`, false, false, ""},
	"unknown field path":     {`{"type":"object","properties":{"a":{"type":"string"}},"x-kubernetes-validations":[{"rule":"true","fieldPath":".b"}]}`, false, false, ""},
	"lines in a message":     {`{"type":"string","x-kubernetes-validations":[{"rule":"true","message":"a\nb"}]}`, false, false, ""},
	"rule that costs much":   {`{"type":"array","items":{"type":"array","items":{"type":"string"}},"x-kubernetes-validations":[{"rule":"self.all(x, x.all(y, self.all(z, z.all(u, u.matches(y)))))"}]}`, false, false, ""},
	"defaults of many":       {`{"type":"array","items":{"type":"integer","default":"x"}}`, false, false, ""},
	"not without value":      {`{"type":"string","not":{"type":"string"}}`, false, false, ""},
	"default in a condition": {`{"type":"string","anyOf":[{"default":"a"}]}`, false, false, ""},

	"example":              {`{"type":"string","example":"a"}`, true, true, ""},
	"example of type":      {`{"type":"integer","example":"three"}`, false, true, examplesMatter},
	"enum of type":         {`{"type":"integer","enum":["three"]}`, false, true, examplesMatter},
	"old value":            {`{"type":"string","maxLength":9,"x-kubernetes-validations":[{"rule":"self == oldSelf"}]}`, true, false, alone},
	"metadata":             {`{"type":"string","x-metadata":{"labels":{"a":"b"}}}`, true, false, clusterAPIs},
	"typing error":         {`{"type":"string","maxLenght":3}`, true, false, dropped},
	"list that is a set":   {`{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set"}`, true, true, ""},
	"list type":            {`{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"bag"}`, true, false, dropped},
	"nullable":             {`{"type":"string","nullable":true,"default":null}`, true, true, ""},
	"null default":         {`{"type":"string","default":null}`, true, true, ""},
	"null in enum":         {`{"type":"string","enum":["a",null]}`, true, true, ""},
	"marks that are false": {`{"type":"string","x-kubernetes-preserve-unknown-fields":false}`, true, false, absent},
	"described condition":  {`{"type":"string","anyOf":[{"description":"a"}]}`, true, false, absent},
	"unique items":         {`{"type":"array","uniqueItems":true,"items":{"type":"string"}}`, true, false, dropped},
	"embedded resource":    {`{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}`, true, true, ""},
	"reference":            {`{"$ref":"#/definitions/a","type":"string"}`, true, false, dropped},
	"title":                {`{"type":"string","title":"a"}`, true, true, ""},
	"multiple":             {`{"type":"integer","multipleOf":3,"default":6}`, true, true, ""},
	"multiple default":     {`{"type":"integer","multipleOf":3,"default":7}`, true, false, dropped},
	"pattern properties":   {`{"type":"object","patternProperties":{"a":{"type":"string"}}}`, true, false, dropped},
	"length below zero":    {`{"type":"string","minLength":-1}`, true, true, ""},
	"large pattern":        {`{"type":"string","pattern":"` + strings.Repeat("a", 5000) + `"}`, true, false, bounded},
	"many rules":           {`{"type":"string","maxLength":9,"x-kubernetes-validations":[` + strings.Repeat(`{"rule":"true"},`, 100) + `{"rule":"true"}]}`, true, false, bounded},
}

// TestSchemasOfVariablesAndParameters holds the two judgements against one table of schemas.
func TestSchemasOfVariablesAndParameters(t *testing.T) {
	for name, tt := range judgedSchemas {
		t.Run(name, func(t *testing.T) {
			object := `{"type":"object","properties":{"member":` + tt.schema + `}}`
			_, parameter := parameters.Compile([]byte(object))
			s, variable := Parse([]byte(object))
			if variable == nil {
				variable = s.CheckValues(t.Context())
			}
			if (variable == nil) != tt.variable {
				t.Errorf("of a variable: %v, want it taken: %v", variable, tt.variable)
			}
			if (parameter == nil) != tt.parameter {
				t.Errorf("of parameters: %v, want it taken: %v", parameter, tt.parameter)
			}
			if differ := tt.variable != tt.parameter; differ != (tt.reason != "") {
				t.Errorf("they differ: %v, and the reason is %q", differ, tt.reason)
			}
		})
	}
}
