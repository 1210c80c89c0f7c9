// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/text"
)

// Handlers returns the handlers of every group of hooks that the server has, in the newest version that it has of each.
func (s *Server) Handlers(ctx context.Context, hooks *catalog.Catalog) ([]*hooksv1alpha1.ExtensionHandler, error) {
	var handlers []*hooksv1alpha1.ExtensionHandler
	var first error // of a group that the server does not have
	answered := false
	for _, versions := range hooks.Discoveries() {
		for _, h := range versions {
			a, err := s.Call(ctx, h, "", h.Request.New().Interface())
			var refused *CallError
			if errors.As(err, &refused) && refused.absent {
				first = cmp.Or(first, err)
				continue
			}
			if err == nil {
				err = CheckStatus(h, a)
			}
			if err != nil {
				return nil, err
			}
			answered = true
			handlers = append(handlers, catalog.HandlersOf(a.Message)...)
			break
		}
	}
	if !answered {
		return nil, first
	}
	return handlers, nil
}

// CheckStatus returns an error unless the answer has the status Success. An answer without a status is an error, too.
func CheckStatus(h *catalog.Hook, a *Answer) error {
	common, ok := a.Message.(interface {
		GetStatus() hooksv1alpha1.ResponseStatus
		GetMessage() string
	})
	if !ok {
		return fmt.Errorf("call %s: answer %T has no status", h.Hook, a.Message)
	}
	id := ""
	if a.CallID != "" {
		id = " (call id " + text.Printable(a.CallID) + ")"
	}
	switch common.GetStatus() {
	case hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS:
		return nil
	case hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_FAILURE:
		says, _ := catalog.FailureOf(a.Message)
		if common.GetMessage() == says {
			says = "answered Failure: " + text.Printable(says)
		}
		return fmt.Errorf("call %s: the extension %s%s", h.Hook, says, id)
	default:
		return errors.New("call " + h.Hook + ": the answer has no status: it must be Success or Failure" + id)
	}
}
