// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

const (
	formatCloudConfig = "cloud-config"
	formatIgnition    = "ignition"
)

var (
	// jinja is an expression of a template of cloud-init; only metadata by its plain name is known.
	jinja = regexp.MustCompile(`\{\{-?\s*(.*?)\s*-?\}\}`)
	// kubeadmCommand finds what is run, and with which file.
	kubeadmCommand = regexp.MustCompile(`kubeadm\s+(init|join)\b.*?--config[ =](\S+)`)
)

// userData is what a machine boots with, once it is understood.
type userData struct {
	files map[string][]byte
	// command is init or join, of kubeadm; config is the file that it reads.
	command string
	config  []byte
}

// cloudConfig is what is read of cloud-init's document.
type cloudConfig struct {
	WriteFiles []struct {
		Path     string `json:"path"`
		Content  string `json:"content"`
		Encoding string `json:"encoding"`
	} `json:"write_files"`
	RunCmd []any `json:"runcmd"`
}

// ignitionConfig is what is read of Ignition's document.
type ignitionConfig struct {
	Storage struct {
		Files []struct {
			Path     string `json:"path"`
			Contents struct {
				Source string `json:"source"`
			} `json:"contents"`
		} `json:"files"`
	} `json:"storage"`
}

// parseUserData reads the bootstrap data of a machine with this metadata.
func parseUserData(format string, data []byte, metadata map[string]string) (*userData, error) {
	u := &userData{files: map[string][]byte{}}
	var script string
	var err error
	switch format {
	case "", formatCloudConfig:
		script, err = u.readCloudConfig(data, metadata)
	case formatIgnition:
		script, err = u.readIgnition(data)
	default:
		err = fmt.Errorf("format %q is not known; %s and %s are", format, formatCloudConfig, formatIgnition)
	}
	if err != nil {
		return nil, err
	}
	command := kubeadmCommand.FindStringSubmatch(script)
	if command == nil {
		return nil, errors.New("no command runs kubeadm init or kubeadm join with --config")
	}
	config, ok := u.files[command[2]]
	if !ok {
		return nil, fmt.Errorf("kubeadm reads %s, which is not among the files", command[2])
	}
	u.command, u.config = command[1], config
	return u, nil
}

// readCloudConfig reads the files of cloud-init's document, and returns the commands that it runs.
func (u *userData) readCloudConfig(data []byte, metadata map[string]string) (string, error) {
	if bytes.HasPrefix(data, []byte("## template: jinja")) {
		rendered, err := render(data, metadata)
		if err != nil {
			return "", err
		}
		data = rendered
	}
	var config cloudConfig
	if err := yaml.Unmarshal(data, &config); err != nil {
		return "", fmt.Errorf("cloud-config: %w", err)
	}
	for _, file := range config.WriteFiles {
		content, err := decodeContent(file.Encoding, file.Content)
		if err != nil {
			return "", fmt.Errorf("cloud-config: file %s: %w", file.Path, err)
		}
		u.files[file.Path] = content
	}
	var script strings.Builder
	for _, command := range config.RunCmd {
		words, ok := command.([]any)
		if !ok {
			words = []any{command}
		}
		for _, word := range words {
			fmt.Fprintf(&script, "%v ", word)
		}
		script.WriteString("\n")
	}
	return script.String(), nil
}

// readIgnition reads the files of Ignition's document, and returns the scripts among them.
func (u *userData) readIgnition(data []byte) (string, error) {
	var config ignitionConfig
	if err := json.Unmarshal(data, &config); err != nil {
		return "", fmt.Errorf("ignition: %w", err)
	}
	var scripts strings.Builder
	for _, file := range config.Storage.Files {
		content, err := decodeDataURL(file.Contents.Source)
		if err != nil {
			return "", fmt.Errorf("ignition: file %s: %w", file.Path, err)
		}
		u.files[file.Path] = content
		if strings.HasSuffix(file.Path, ".sh") {
			scripts.Write(content)
			scripts.WriteString("\n")
		}
	}
	return scripts.String(), nil
}

// render fills in a machine's metadata.
func render(data []byte, metadata map[string]string) ([]byte, error) {
	var unknown error
	rendered := jinja.ReplaceAllFunc(data, func(expression []byte) []byte {
		name := string(jinja.FindSubmatch(expression)[1])
		value, ok := metadata[strings.TrimPrefix(strings.TrimPrefix(name, "ds.meta_data."), "v1.")]
		if !ok {
			unknown = fmt.Errorf("cloud-config: the template's expression %q is not known", name)
		}
		return []byte(value)
	})
	return rendered, unknown
}

// decodeContent returns the content of a file of cloud-init.
func decodeContent(encoding, content string) ([]byte, error) {
	switch encoding {
	case "":
		return []byte(content), nil
	case "b64", "base64":
		return base64.StdEncoding.DecodeString(strings.TrimSpace(content))
	case "gz+b64", "gzip+base64", "gz+base64", "gzip+b64":
		compressed, err := base64.StdEncoding.DecodeString(strings.TrimSpace(content))
		if err != nil {
			return nil, err
		}
		reader, err := gzip.NewReader(bytes.NewReader(compressed))
		if err != nil {
			return nil, err
		}
		decoded, err := io.ReadAll(io.LimitReader(reader, maxBody+1))
		if err == nil && len(decoded) > maxBody {
			err = fmt.Errorf("more than %d bytes", maxBody)
		}
		return decoded, err
	default:
		return nil, fmt.Errorf("encoding %q is not known", encoding)
	}
}

// decodeDataURL returns the content of a file of Ignition.
func decodeDataURL(source string) ([]byte, error) {
	rest, ok := strings.CutPrefix(source, "data:")
	if !ok {
		return nil, errors.New("only data URLs are read")
	}
	mediaType, content, ok := strings.Cut(rest, ",")
	if !ok {
		return nil, errors.New("a data URL needs a comma")
	}
	if strings.HasSuffix(mediaType, ";base64") {
		return base64.StdEncoding.DecodeString(content)
	}
	plain, err := url.PathUnescape(content)
	return []byte(plain), err
}
