// Package bank is the bank workload: accounts with exact money, transfers
// between them in several styles, payrolls, joint transfers, inquiries, and
// audits that run in the background. Its logic is written once for SQL and once for ordered
// key-value stores; it names no database.
//
// Accounts are made by formula (account.go), transactions by a seeded choice
// (choice.go); what a database is asked to do is in sql*.go and kv*.go.
package bank
