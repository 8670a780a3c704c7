package wire

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
)

// These are the reasons for a failed connection.
const (
	RefusedReason = "connection refused"
	NoHostReason  = "no such host"
	NoNameReason  = "the name of the host could not be looked up"
	LateReason    = "no answer in time"
)

// Reason returns the reason for a failed connection in words that all drivers share. It contains no address,
// because the caller's sentence does. It is empty if err is not a network error.
func Reason(err error) string {
	var name *net.DNSError
	var number syscall.Errno
	var network net.Error
	switch {
	case errors.As(err, &name) && name.IsNotFound:
		return NoHostReason
	case errors.As(err, &name):
		return NoNameReason
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, syscall.ETIMEDOUT):
		return LateReason
	case errors.As(err, &number):
		return number.Error()
	case errors.As(err, &network) && network.Timeout():
		return LateReason
	}
	return TextReason(err.Error())
}

// TextReason is Reason for an error that a library reports only as text: package net's text for a dial or a
// name look-up. For other texts it is empty.
func TextReason(text string) string {
	dial := max(strings.LastIndex(text, "dial tcp"), strings.LastIndex(text, "lookup "))
	if dial < 0 {
		return ""
	}
	text = text[dial:]
	last := strings.Trim(text[strings.LastIndexByte(text, ':')+1:], ` "`)
	switch {
	case strings.HasSuffix(text, "i/o timeout") && strings.Contains(text, "lookup "), last == "server misbehaving", last == "Temporary failure in name resolution":
		return NoNameReason
	case last == "i/o timeout", last == "connection timed out":
		return LateReason
	}
	return last
}
