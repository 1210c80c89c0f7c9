// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookversion_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/test/hookversions"
	v1 "github.com/hookgate/hookgate/test/hookversions/gen/hookversions/v1"
	v1alpha1 "github.com/hookgate/hookgate/test/hookversions/gen/hookversions/v1alpha1"
	v1beta1 "github.com/hookgate/hookgate/test/hookversions/gen/hookversions/v1beta1"
)

// unknown returns unknown members with these names and JSON texts.
func unknown(namesAndTexts ...string) map[string]*hooksv1alpha1.JSON {
	m := map[string]*hooksv1alpha1.JSON{}
	for i := 0; i < len(namesAndTexts); i += 2 {
		m[namesAndTexts[i]] = &hooksv1alpha1.JSON{Raw: []byte(namesAndTexts[i+1])}
	}
	return m
}

// TestConversions converts requests and answers with losses between every two versions, through the hub.
func TestConversions(t *testing.T) {
	const request, response = true, false
	for name, tc := range map[string]struct {
		reason   string
		request  bool
		from, to string
		in, want proto.Message
		lost     []string
	}{
		"UnknownTwice": {
			reason: "a member that both of two elements have is one loss; null says nothing",
			from:   "v1beta1", to: "v1", request: request,
			in: &v1beta1.BeforeNodeDrainRequest{
				Volumes: []*v1beta1.Volume{
					{Name: "a", UnknownMembers: unknown("sizeBytes", "1", "hint", "2")},
					{Name: "b", UnknownMembers: unknown("sizeBytes", "3", "encrypted", "null")},
				},
				UnknownMembers: unknown("Reason", `"power"`, "sizeBytes", "4"),
			},
			want: &v1.BeforeNodeDrainRequest{
				GraceSeconds: 30, Volumes: []*v1.Volume{{Name: "a", UnknownMembers: unknown("hint", "2")}, {Name: "b"}},
				UnknownMembers: unknown("sizeBytes", "4"),
			},
			lost: []string{"Reason", "volumes[*].sizeBytes"},
		},
		"UnknownDown": {
			reason: "the way down loses what the older version calls otherwise, in any case",
			from:   "v1", to: "v1beta1", request: request,
			in: &v1.BeforeNodeDrainRequest{
				Volumes: []*v1.Volume{{SizeBytes: 5, UnknownMembers: unknown("ſize", "6")}}, UnknownMembers: unknown(
					"node", `"n"`, "line\nbreak", "7",
				),
			},
			want: &v1beta1.BeforeNodeDrainRequest{
				Volumes: []*v1beta1.Volume{{Size: 5}}, UnknownMembers: unknown("line\nbreak", "7"),
			},
			lost: []string{"node", "volumes[*].ſize"},
		},
		"UnknownOfTheMessageOnly": {
			reason: "a name that is no member of the JSON is unknown",
			from:   "v1", to: "v1beta1", request: request,
			in:   &v1.BeforeNodeDrainRequest{UnknownMembers: unknown("handler", "1", "unknownMembers", "2")},
			want: &v1beta1.BeforeNodeDrainRequest{UnknownMembers: unknown("handler", "1", "unknownMembers", "2")},
		},
		"SpokeToSpoke": {
			reason: "a request passes the hub, and both halves of the way count",
			from:   "v1beta1", to: "v1alpha1", request: request,
			in: &v1beta1.BeforeNodeDrainRequest{
				Host: "h", Port: 1, DryRun: new(false), Labels: []string{"l"},
				Volumes:        []*v1beta1.Volume{{Size: 1}, {Size: 2}},
				UnknownMembers: unknown("endpoint", `"e"`, "reason", "1"),
			},
			want: &v1alpha1.BeforeNodeDrainRequest{Endpoint: "h:1", Volumes: []*v1alpha1.Volume{{}, {}}},
			lost: []string{"dryRun", "endpoint", "reason", "tags", "volumes[*].sizeBytes"},
		},
		"AnswerSpokeToSpoke": {
			reason: "an answer as well",
			from:   "v1alpha1", to: "v1beta1", request: response,
			in: &v1alpha1.BeforeNodeDrainResponse{
				Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS, RetryAfterSeconds: 3, Ticket: "t",
				Urgent: new(true),
			},
			want: &v1beta1.BeforeNodeDrainResponse{
				Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS, RetryAfterSeconds: 3, Ticket: "t",
			},
			lost: []string{"priority"},
		},
		"AnswerUp": {
			reason: "that a member was there with its default is lost, where the hub cannot say so",
			from:   "v1alpha1", to: "v1", request: response,
			in: &v1alpha1.BeforeNodeDrainResponse{
				Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_FAILURE, Urgent: new(false),
			},
			want: &v1.BeforeNodeDrainResponse{Status: v1.ResponseStatus_RESPONSE_STATUS_FAILURE, Priority: 5},
			lost: []string{"urgent"},
		},
		"AnswerDown": {
			reason: "nested members of lists are one loss",
			from:   "v1", to: "v1beta1", request: response,
			in: &v1.PlanDrainsResponse{Waves: []*v1.Wave{
				{
					Title: "x", PauseSeconds: 1,
					Members: []*v1.Member{{NodeName: "n", UnknownMembers: unknown("name", `"m"`)}},
				},
				{PauseSeconds: 2},
			}},
			want: &v1beta1.PlanDrainsResponse{
				Steps: []*v1beta1.Step{{Label: "x", Nodes: []*v1beta1.Node{{Name: "n"}}}, {}},
			},
			lost: []string{"waves[*].members[*].name", "waves[*].pauseSeconds"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := hookversions.New()
			in, ok := c.ByRequest(tc.in)
			if !tc.request {
				for _, h := range c.Hooks() {
					if h.Response.Descriptor() == tc.in.ProtoReflect().Descriptor() {
						in, ok = h, true
					}
				}
			}
			if !ok {
				t.Fatalf("no hook has %T", tc.in)
			}
			to, ok := in.In(tc.to)
			if !ok || in.Version != tc.from {
				t.Fatalf("%T is of %s", tc.in, in)
			}
			before := proto.Clone(tc.in)
			convert := hookversions.NewConverter(c).ConvertResponse
			if tc.request {
				convert = hookversions.NewConverter(c).ConvertRequest
			}
			got, lost, err := convert(tc.in, in, to)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, protocmp.Transform()); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.lost, lost); diff != "" {
				t.Errorf("%s: lost: -want +got:\n%s", tc.reason, diff)
			}
			if !proto.Equal(before, tc.in) {
				t.Errorf("the message was changed to %v", tc.in)
			}
		})
	}
}

// What can be lost is declared, for each two versions: sorted, each path once.
func TestDeclaredLosses(t *testing.T) {
	c := hookversions.New()
	converter := hookversions.NewConverter(c)
	drain, _ := c.ByName(hookversions.BeforeNodeDrain)
	plan, _ := c.ByName(hookversions.PlanDrains)
	beta, _ := drain.In("v1beta1")
	alpha, _ := drain.In("v1alpha1")
	tags := []string{"forced", "graceSeconds", "reason", "tags", "volumes[*].encrypted", "volumes[*].sizeBytes"}
	for name, tc := range map[string]struct{ got, want []string }{
		"RequestSame":  {converter.RequestLosses(beta, beta), nil},
		"RequestOther": {converter.RequestLosses(beta, plan), nil},
		"RequestUp":    {converter.RequestLosses(beta, drain), []string{"dryRun"}},
		"RequestDown": {
			converter.RequestLosses(drain, beta), []string{"forced", "graceSeconds", "reason", "volumes[*].encrypted"},
		},
		"RequestUpAlpha":      {converter.RequestLosses(alpha, drain), nil},
		"RequestBetaToAlpha":  {converter.RequestLosses(beta, alpha), append([]string{"dryRun"}, tags...)},
		"ResponseAlphaToBeta": {converter.ResponseLosses(alpha, beta), []string{"approver", "priority", "urgent"}},
		"ResponseDown":        {converter.ResponseLosses(drain, beta), []string{"approver", "priority"}},
		"ResponseUp":          {converter.ResponseLosses(beta, drain), nil},
	} {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
	// Reading them changes nothing.
	if diff := cmp.Diff(append([]string{"dryRun"}, tags...), converter.RequestLosses(beta, alpha)); diff != "" {
		t.Errorf("the second time: -want +got:\n%s", diff)
	}
}
