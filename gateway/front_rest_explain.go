// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
)

// ExplainPrefix is the prefix of the paths that explain calls: with it, the path of a hook has an Explanation instead
// of an answer. The query call=true calls the handlers, too. A gateway that does not know these paths answers 404, and
// calls nothing.
const ExplainPrefix = "/explain"

// protocolExplain is the protocol of requests for explanations in metrics: they are no calls.
const protocolExplain = "explain"

// explain answers a request for an explanation. An error means that nothing has been written.
func (f *REST) explain(ctx context.Context, w http.ResponseWriter, r *http.Request, in *call) error {
	calls := false
	if asked := r.URL.Query().Get("call"); asked != "" {
		var err error
		if calls, err = strconv.ParseBool(asked); err != nil {
			return hook.Errorf(hook.InvalidRequest, "query parameter call: want true or false, got %q", cut(asked))
		}
	}
	_, handler, _ := f.config.Catalog.ByPath(r.URL.Path[len(ExplainPrefix):])
	if handler != "" {
		handler = handler[1:] // behind the slash
	}
	request, err := in.request(f.config.Codec, catalog.WithHandler(in.Hook.Request.New().Interface(), handler),
		func(string) reading { return readWhole })
	if err != nil {
		return err
	}
	if err := in.via.Check(f.config.Gateway); err != nil {
		return err
	}
	explain := f.dispatcher.Explain
	if calls {
		explain = f.dispatcher.ExplainCall
	}
	x, err := explain(ctx, request)
	if err != nil {
		return err
	}
	body, err := json.Marshal(x)
	if err != nil {
		return internalError(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // the server sees a caller that left
	return nil
}
