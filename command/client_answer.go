// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/text"
)

// handlers returns the handlers of every group of hooks that the server has, in the newest version that it has of each.
func (s *server) handlers(ctx context.Context, hooks *catalog.Catalog) ([]*hooksv1alpha1.ExtensionHandler, error) {
	var handlers []*hooksv1alpha1.ExtensionHandler
	var first error // of a group that the server does not have
	answered := false
	for _, versions := range hooks.Discoveries() {
		for _, h := range versions {
			a, err := s.call(ctx, h, "", h.Request.New().Interface())
			var refused *callError
			if errors.As(err, &refused) && refused.absent {
				first = cmp.Or(first, err)
				continue
			}
			if err == nil {
				err = checkStatus(h, a)
			}
			if err != nil {
				return nil, err
			}
			answered = true
			handlers = append(handlers, catalog.HandlersOf(a.message)...)
			break
		}
	}
	if !answered {
		return nil, first
	}
	return handlers, nil
}

// checkStatus returns an error unless the answer has the status Success. An answer without a status is an error, too.
func checkStatus(h *catalog.Hook, a *answer) error {
	common, ok := a.message.(interface {
		GetStatus() hooksv1alpha1.ResponseStatus
		GetMessage() string
	})
	if !ok {
		return fmt.Errorf("call %s: answer %T has no status", h.Hook, a.message)
	}
	id := ""
	if a.callID != "" {
		id = " (call id " + text.Printable(a.callID) + ")"
	}
	switch common.GetStatus() {
	case hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS:
		return nil
	case hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_FAILURE:
		if common.GetMessage() == "" {
			return fmt.Errorf("call %s: the extension answered Failure, without a message%s", h.Hook, id)
		}
		return fmt.Errorf("call %s: the extension answered Failure: %s%s", h.Hook, text.Printable(common.GetMessage()), id)
	default:
		return errors.New("call " + h.Hook + ": the answer has no status: it must be Success or Failure" + id)
	}
}
