// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package chaintest

import (
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/manifest"
)

// Kind is the kind of a Test.
const Kind = "HandlerChainTest"

// Test is a HandlerChainTest of hookgate.dev/v1alpha1. It is a file only: no API server knows it.
type Test struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec Spec `json:"spec"`
}

// Spec says what is called, and the cases.
type Spec struct {
	// Hook is the hook of the chain, and Chain its name.
	Hook  string `json:"hook"`
	Chain string `json:"chain"`
	Cases []Case `json:"cases"`
}

// Case is a request, and what is wanted of the answer.
type Case struct {
	Name string `json:"name"`
	// Request is the request. RequestFile has it instead, with a path that is relative to the file of the test.
	Request     json.RawMessage `json:"request,omitempty"`
	RequestFile string          `json:"requestFile,omitempty"`
	Want        Want            `json:"want"`
}

// Want is what is wanted. Without Failure, the answer has to be a success.
type Want struct {
	// Objects are those of the request with the patches of the answer applied, as Cluster API applies them. Others are
	// not compared.
	Objects []Object `json:"objects,omitempty"`
	// Response has members of the answer, such as variables, which have to be equal.
	Response map[string]json.RawMessage `json:"response,omitempty"`
	// Failure is the message of the answer, or of the error of the call.
	Failure string `json:"failure,omitempty"`
}

// Object is a wanted object: of an item of GeneratePatches by its uid, and otherwise by the name of the member, such as
// machine.
type Object struct {
	UID    string          `json:"uid,omitempty"`
	Name   string          `json:"name,omitempty"`
	Object json.RawMessage `json:"object"`
}

// Parse returns the Tests in a file, or what is wrong with it.
func Parse(file string, content []byte, hooks *catalog.Catalog) ([]*Test, error) {
	tests, problems := manifest.DecodeOwn[Test](file, content, Kind)
	var errs []error
	for i := range problems {
		errs = append(errs, &problems[i])
	}
	for _, t := range tests {
		if err := t.check(hooks); err != nil {
			errs = append(errs, fmt.Errorf("%s: %s %q: %w", file, Kind, t.Name, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return tests, nil
}

// check returns an error unless the test is complete.
func (t *Test) check(hooks *catalog.Catalog) error {
	h, ok := hooks.ByName(t.Spec.Hook)
	switch {
	case t.Spec.Hook == "":
		return errors.New("spec.hook: required")
	case !ok || h.Singleton():
		return fmt.Errorf("spec.hook: no hook %q has chains", t.Spec.Hook)
	case t.Spec.Chain == "":
		return errors.New("spec.chain: required")
	case len(t.Spec.Cases) == 0:
		return errors.New("spec.cases: want one at least")
	}
	var errs []error
	names := map[string]bool{}
	for i := range t.Spec.Cases {
		c := &t.Spec.Cases[i]
		wrong := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("spec.cases[%d]%s", i, fmt.Sprintf(format, args...)))
		}
		switch {
		case c.Name == "":
			wrong(".name: required")
		case names[c.Name]:
			wrong(".name: %q is the name of another case, too", c.Name)
		}
		names[c.Name] = true
		if (len(c.Request) == 0) == (c.RequestFile == "") {
			wrong(": want one of request and requestFile")
		}
		if c.Want.Failure != "" && (len(c.Want.Objects) > 0 || len(c.Want.Response) > 0) {
			wrong(".want: a failure has neither objects nor a response")
		}
		for j := range c.Want.Objects {
			if o := &c.Want.Objects[j]; (o.UID == "") == (o.Name == "") || len(o.Object) == 0 {
				wrong(".want.objects[%d]: want one of uid and name, and the object", j)
			}
		}
	}
	return errors.Join(errs...)
}
