// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package outcome

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
)

const (
	success = hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS
	failure = hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_FAILURE
)

// merged merges answers of the handlers v.a, v.b and so on.
func merged(t *testing.T, hookName string, answers ...Answer) (proto.Message, error) {
	t.Helper()
	h, ok := catalog.New().ByName(hookName)
	if !ok {
		t.Fatalf("no hook %s", hookName)
	}
	return Merge(h, func(i int) string { return "v." + string(rune('a'+i)) }, answers)
}

func agreed(message string, retry int32) Answer {
	return Answer{Response: &hooksv1alpha1.BeforeClusterCreateResponse{Status: success, Message: message, RetryAfterSeconds: retry}}
}

func refusal(message string) Answer {
	return Answer{Response: &hooksv1alpha1.BeforeClusterCreateResponse{Status: failure, Message: message, RetryAfterSeconds: 1}}
}

func failing(kind hook.Kind, handler, text string, cause error) Answer {
	return Answer{Err: hook.Errorf(kind, "%s", text).WithHandler(handler).WithCause(cause)}
}

// The least of retryAfterSeconds that is not zero counts, as Cluster API computes it.
func TestMergeRetryAfterSeconds(t *testing.T) {
	for _, tc := range []struct {
		retries []int32
		want    int32
	}{
		{[]int32{0, 0}, 0}, {[]int32{0, 5}, 5}, {[]int32{5, 0}, 5}, {[]int32{5, 7}, 5}, {[]int32{7, 5}, 5}, {[]int32{5, 5}, 5},
		{[]int32{9, 0, 3, 0, 4}, 3}, {[]int32{0, 0, 1}, 1}, {[]int32{-1, 5}, -1}, {[]int32{5, -1}, -1}, {[]int32{0, -1}, -1}, {[]int32{-2, -1}, -2},
	} {
		var answers []Answer
		for _, r := range tc.retries {
			answers = append(answers, agreed("", r))
		}
		got, err := merged(t, "BeforeClusterCreate", answers...)
		if err != nil || got.(*hooksv1alpha1.BeforeClusterCreateResponse).GetRetryAfterSeconds() != tc.want {
			t.Errorf("of %v: got %v, %v; want %d", tc.retries, got, err, tc.want)
		}
	}
}

func TestMergeMessages(t *testing.T) {
	for _, tc := range []struct {
		messages []string
		want     string
	}{
		{nil, ""}, {[]string{"", ""}, ""}, {[]string{"a", ""}, "a"}, {[]string{"", "b"}, "b"}, {[]string{"a", "b", "a"}, "a, b, a"},
	} {
		var answers []Answer
		for _, m := range tc.messages {
			answers = append(answers, agreed(m, 0))
		}
		got, err := merged(t, "BeforeClusterCreate", answers...)
		want := &hooksv1alpha1.BeforeClusterCreateResponse{Status: success, Message: tc.want}
		if diff := cmp.Diff(proto.Message(want), got, protocmp.Transform()); err != nil || diff != "" {
			t.Errorf("%q: %v, -want +got:\n%s", tc.messages, err, diff)
		}
	}
}

// The answer of a hook that does not hold its caller has no retryAfterSeconds to set.
func TestMergeOfAHookThatDoesNotBlock(t *testing.T) {
	one := Answer{Response: &hooksv1alpha1.AfterControlPlaneInitializedResponse{Status: success, Message: "a"}}
	got, err := merged(t, "AfterControlPlaneInitialized", one, one)
	want := &hooksv1alpha1.AfterControlPlaneInitializedResponse{Status: success, Message: "a, a"}
	if diff := cmp.Diff(proto.Message(want), got, protocmp.Transform()); err != nil || diff != "" {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
}

// Of the same unknown member in two answers, in any case, the first handler's wins; all others are kept.
func TestMergeUnknownMembers(t *testing.T) {
	with := func(members map[string]string) Answer {
		m := &hooksv1alpha1.BeforeClusterCreateResponse{Status: success, UnknownMembers: map[string]*hooksv1alpha1.JSON{}}
		for k, v := range members {
			m.UnknownMembers[k] = &hooksv1alpha1.JSON{Raw: []byte(v)}
		}
		return Answer{Response: m}
	}
	a, b, c := with(map[string]string{"x": "1", "y": "2"}), with(map[string]string{"X": "3", "z": "4"}), with(map[string]string{"y": "5", "z": "6", "w": "7"})
	before := proto.Clone(a.Response)
	got, err := merged(t, "BeforeClusterCreate", a, b, c)
	want := with(map[string]string{"x": "1", "y": "2", "z": "4", "w": "7"}).Response
	if diff := cmp.Diff(want, got, protocmp.Transform()); err != nil || diff != "" {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	if diff := cmp.Diff(before, a.Response, protocmp.Transform()); diff != "" {
		t.Errorf("an answer was changed: -want +got:\n%s", diff)
	}
}

// With several failures, the kind is the first handler's, and the text names all in the order of names.
func TestMergeOfSeveralFailures(t *testing.T) {
	dial, decode := errors.New("dial 10.0.0.7:4711"), errors.New("unexpected EOF")
	unreachable := failing(hook.Unreachable, "v.a", "connection refused", dial)
	bad := failing(hook.BadResponse, "v.b", "answer is empty", decode)
	internal := Answer{Err: errors.New("a defect")}
	tests := map[string]struct {
		answers []Answer
		kind    hook.Kind
		text    string
		causes  []error
	}{
		"One":             {[]Answer{unreachable, agreed("", 3)}, hook.Unreachable, `handler "v.a": connection refused`, []error{dial}},
		"TwoKinds":        {[]Answer{unreachable, bad}, hook.Unreachable, `handler "v.a": connection refused; handler "v.b": answer is empty`, []error{dial, decode}},
		"OtherWayRound":   {[]Answer{bad, unreachable}, hook.BadResponse, `handler "v.b": answer is empty; handler "v.a": connection refused`, []error{dial, decode}},
		"FailureFirst":    {[]Answer{refusal("no"), bad}, hook.BadResponse, `handler "v.a": no; handler "v.b": answer is empty`, []error{decode}},
		"FailureLast":     {[]Answer{unreachable, refusal("no")}, hook.Unreachable, `handler "v.a": connection refused; handler "v.b": no`, []error{dial}},
		"BetweenSuccess":  {[]Answer{agreed("yes", 1), bad, agreed("yes", 2), unreachable}, hook.BadResponse, `handler "v.b": answer is empty; handler "v.a": connection refused`, []error{decode, dial}},
		"Defect":          {[]Answer{internal, bad}, hook.Internal, `internal error: see the gateway's log; handler "v.b": answer is empty`, []error{decode}},
		"NotCalledBehind": {[]Answer{bad, {}, {}}, hook.BadResponse, `handler "v.b": answer is empty`, []error{decode}},
		"NotCalledBefore": {[]Answer{{}, bad}, hook.BadResponse, `handler "v.b": answer is empty`, []error{decode}},
	}
	for name, tc := range tests {
		got, err := merged(t, "BeforeClusterCreate", tc.answers...)
		if got != nil || err == nil || err.Error() != tc.text || hook.KindOf(err) != tc.kind {
			t.Errorf("%s: got %v, %v (%s); want %s (%s)", name, got, err, hook.KindOf(err), tc.text, tc.kind)
		}
		for _, cause := range tc.causes {
			if !errors.Is(err, cause) {
				t.Errorf("%s: the log does not get the cause %v", name, cause)
			}
		}
	}
}

// Several Failures are one, which does not hold its caller.
func TestMergeOfFailures(t *testing.T) {
	got, err := merged(t, "BeforeClusterCreate", refusal("no"), agreed("yes", 3), refusal("never"), Answer{}, refusal(" "))
	want := &hooksv1alpha1.BeforeClusterCreateResponse{
		Status:  failure,
		Message: `handler "v.a": no; handler "v.c": never; handler "v.e": answered Failure without a message`,
	}
	if diff := cmp.Diff(proto.Message(want), got, protocmp.Transform()); err != nil || diff != "" {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
}

func TestMergeOfOneAndOfNone(t *testing.T) {
	one := agreed("as it is", 3)
	one.Response.(*hooksv1alpha1.BeforeClusterCreateResponse).UnknownMembers = map[string]*hooksv1alpha1.JSON{"x": {Raw: []byte("1")}}
	if got, err := merged(t, "BeforeClusterCreate", one); err != nil || got != one.Response {
		t.Errorf("one answer: got %v, %v", got, err)
	}
	got, err := merged(t, "BeforeClusterCreate")
	want := &hooksv1alpha1.BeforeClusterCreateResponse{Status: success}
	if diff := cmp.Diff(proto.Message(want), got, protocmp.Transform()); err != nil || diff != "" {
		t.Errorf("no answer: %v, -want +got:\n%s", err, diff)
	}
}
