// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	hooks "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	infrastructure "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/sdk"
)

type create = hooks.BeforeClusterCreateRequest

// logged returns an extension with the handlers that testdata/logs.json calls.
func logged() *sdk.Extension {
	x := &sdk.Extension{}
	for name, err := range map[string]error{
		"done": nil, "refusing": sdk.Failf("no quota"), "unavailable": status.Error(codes.Unavailable, "come back"),
		"unreadable": status.Error(codes.InvalidArgument, "cluster: there is none"),
	} {
		sdk.Handle(x, name, func(context.Context, *create) (sdk.Answer, error) { return sdk.Done(), err })
	}
	sdk.Handle(x, "broken", func(context.Context, *create) (sdk.Answer, error) { panic("secret") })
	return x
}

// A call that no gateway has sent has no id, and neither has its line.
func TestLogWithoutCallID(t *testing.T) {
	var log bytes.Buffer
	x := logged()
	x.Logger = slog.New(slog.NewJSONHandler(&log, nil))
	if _, err := x.Call(t.Context(), &create{Handler: "refusing"}); err != nil {
		t.Fatal(err)
	}
	if line := log.String(); !strings.Contains(line, "no quota") || strings.Contains(line, "call_id") {
		t.Errorf("the line is %s", line)
	}
}

// The log names a status that no answer may have.
func TestLogUnknownStatus(t *testing.T) {
	var log bytes.Buffer
	x := &sdk.Extension{Logger: slog.New(slog.NewJSONHandler(&log, nil))}
	sdk.HandleResponse(x, "h", func(context.Context, *create) (*hooks.BeforeClusterCreateResponse, error) {
		return &hooks.BeforeClusterCreateResponse{Status: 7}, nil
	})
	if _, err := x.Call(t.Context(), &create{}); err != nil {
		t.Fatal(err)
	}
	const want = `"kind":"Internal","error":"status of the answer: want 1 (Success) or 2 (Failure), got 7"`
	if line := log.String(); !strings.Contains(line, want) {
		t.Errorf("the line is %s, want %s", line, want)
	}
}

// The packages of all languages write the same lines.
func TestLog(t *testing.T) {
	text, err := os.ReadFile("testdata/logs.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases map[string]struct {
		Line   map[string]any
		Others []string
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	s := serve(t, logged(), sdk.Config{Address: "127.0.0.1:0"})
	connection := dial(t, s.address, insecure.NewCredentials())
	client := hooks.NewLifecycleHooksServiceClient(connection)
	discovery := infrastructure.NewDiscoveryServiceClient(connection)
	ctx := metadata.AppendToOutgoingContext(t.Context(), "hookgate-call-id", "c1")
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			before := len(s.log.String())
			switch name {
			case "listening":
				before = 0
			case "BeforeClusterDelete":
				_, _ = client.BeforeClusterDelete(ctx, &hooks.BeforeClusterDeleteRequest{})
			case "DiscoverInfrastructure":
				_, _ = discovery.DiscoverInfrastructure(ctx, &infrastructure.DiscoverInfrastructureRequest{})
			default:
				_, _ = client.BeforeClusterCreate(ctx, &create{Handler: name})
			}
			first, _, _ := strings.Cut(s.log.String()[before:], "\n")
			var line map[string]any
			if err := json.Unmarshal([]byte(first), &line); err != nil {
				t.Fatalf("%v: %s", err, first)
			}
			for _, name := range append(tt.Others, "time") {
				if line[name] == nil {
					t.Errorf("the line has no %s: %s", name, first)
				}
				delete(line, name)
			}
			if diff := cmp.Diff(tt.Line, line); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
