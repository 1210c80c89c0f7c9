// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

// annotationPrefix and the name of a handler make the annotation of a Cluster that tells the handler what to do; a
// setting named like the handler does the same and wins. The value is a list such as
// "retryAfterSeconds=15,delay=200ms" or "status=Failure".
const annotationPrefix = "extension.hookgate.dev/"

// echoInstruction, alone, makes the message the request as the handler decoded it, compressed.
const echoInstruction = "echo"

// author writes the messages of one extension.
type author struct {
	extension string
}

// sign returns the name of the extension, and what was decoded: a checksum of the request as Cluster API's types write
// it again, and the settings. The same request always gets the same text.
func (a author) sign(handler string, request runtimehooksv1.RequestObject) string {
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Sprintf("%s/%s: marshal request: %v", a.extension, handler, err)
	}
	settings := request.GetSettings()
	pairs := make([]string, 0, len(settings))
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		pairs = append(pairs, key+"="+strconv.Quote(settings[key]))
	}
	return fmt.Sprintf("%s/%s read %d bytes, sha256 %x, settings [%s]",
		a.extension, handler, len(body), sha256.Sum256(body), strings.Join(pairs, " "))
}

// echo returns the decoded request as JSON in gzip and base64, because gateways cut long messages.
func (a author) echo(handler string, request runtimehooksv1.RequestObject) string {
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Sprintf("%s/%s: marshal request: %v", a.extension, handler, err)
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(body) // a Buffer takes everything
	_ = w.Close()
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

// instructions returns the request's instructions to the handler.
func instructions(handler string, settings map[string]string, cluster *clusterv1.Cluster) string {
	if text, ok := settings[handler]; ok {
		return text
	}
	if cluster != nil {
		return cluster.Annotations[annotationPrefix+handler]
	}
	return ""
}

// follow does what the instructions say; one that it does not know makes the answer a failure.
func follow(ctx context.Context, text string, response runtimehooksv1.ResponseObject) {
	if text == "" {
		return
	}
	for instruction := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(instruction, "=")
		if err := obey(ctx, key, value, response); err != nil {
			response.SetStatus(runtimehooksv1.ResponseStatusFailure)
			response.SetMessage(fmt.Sprintf("instruction %q: %v", instruction, err))
			return
		}
	}
}

func obey(ctx context.Context, key, value string, response runtimehooksv1.ResponseObject) error {
	switch key {
	case "status":
		response.SetStatus(runtimehooksv1.ResponseStatus(value))
	case "message":
		response.SetMessage(value)
	case "retryAfterSeconds":
		seconds, err := strconv.ParseInt(value, 10, 32)
		if err != nil {
			return err
		}
		retry, ok := response.(runtimehooksv1.RetryResponseObject)
		if !ok {
			return fmt.Errorf("%T cannot be retried", response)
		}
		retry.SetRetryAfterSeconds(int32(seconds))
	case "delay":
		delay, err := time.ParseDuration(value)
		if err != nil {
			return err
		}
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	default:
		return errors.New("not known")
	}
	return nil
}
