module github.com/smm-h/stricttest/go

go 1.19
