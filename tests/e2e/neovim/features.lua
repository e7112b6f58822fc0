--- What Neovim's own commands do with the features of the server: completion, hover, definition, rename, symbols.

package.path = vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2)) .. '/?.lua;' .. package.path
local observe = require('observe')
local seen = observe.seen

local folder = vim.env.NEXUS_TEST_WORKSPACE .. '/backend/auth-service'

local function cursor_at(buffer, words)
  for number, line in ipairs(vim.api.nvim_buf_get_lines(buffer, 0, -1, false)) do
    local column = line:find(words, 1, true)
    if column then
      vim.api.nvim_win_set_cursor(0, { number, column })
      return
    end
  end
  error('no ' .. words)
end

--- The text of the window that floats above the others.
local function float()
  for _, window in ipairs(vim.api.nvim_list_wins()) do
    if vim.api.nvim_win_get_config(window).relative ~= '' then
      return observe.text(vim.api.nvim_win_get_buf(window))
    end
  end
end

observe.run(function()
  observe.install()
  local instructions = observe.open_attached(folder .. '/.nexus3/NEXUS.md')
  cursor_at(instructions, '@docs/threats.md')
  vim.lsp.buf.definition()
  observe.wait('the definition', function()
    return vim.api.nvim_buf_get_name(0):find('threats') ~= nil
  end)
  seen.definition = vim.api.nvim_buf_get_name(0):sub(#folder + 2)

  observe.open(folder .. '/.nexus3/NEXUS.md')
  vim.lsp.buf.document_symbol({
    on_list = function(list)
      seen.symbols = vim.tbl_map(function(item)
        return item.text
      end, list.items)
    end,
  })
  observe.wait('the symbols', function()
    return seen.symbols ~= nil
  end)

  local config = observe.open_attached(folder .. '/.nexus3/config.json')
  cursor_at(config, '"permissions"')
  vim.lsp.buf.hover()
  observe.wait('the hover', function()
    return float() ~= nil
  end)
  seen.hover = float()
  vim.cmd('fclose!')

  vim.api.nvim_buf_set_lines(config, 0, -1, true, { '{', '  "context": {"res"}', '}' })
  vim.api.nvim_win_set_cursor(0, { 2, 16 })
  seen.completion = vim.tbl_map(
    function(item)
      return item.label
    end,
    observe.request('textDocument/completion', vim.lsp.util.make_position_params(0, 'utf-8'))
  )

  vim.fn.writefile({ '{"mcpServers": {"tickets": {"command": "t"}}}' }, folder .. '/.mcp.json')
  vim.fn.mkdir(folder .. '/.claude', 'p')
  vim.fn.writefile({ '{"permissions": {"allow": ["mcp__tickets__find"]}}' }, folder .. '/.claude/settings.json')
  local servers = observe.open_attached(folder .. '/.mcp.json')
  cursor_at(servers, 'tickets')
  vim.lsp.buf.rename('issues')
  observe.wait('the rename', function()
    return observe.text(servers):find('issues') ~= nil
  end)
  local rules = vim.fn.bufnr(folder .. '/.claude/settings.json')
  seen.renamed = { observe.text(servers), observe.text(rules) }
end)
