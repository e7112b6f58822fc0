--- What the scripts here share: the plugin as a package, waiting for conditions, and a record of what was seen.

local M = { seen = {} }

local PATIENCE_MS = 20000

--- Wait for a condition; raises what was awaited when it doesn't come.
function M.wait(what, condition)
  if not vim.wait(PATIENCE_MS, condition, 10) then
    error('timed out: ' .. what)
  end
end

--- Install the plugin like a user does who has no plugin manager: a directory under pack/*/start.
function M.install()
  vim.opt.packpath:prepend(vim.env.NEXUS_TEST_SITE)
  vim.cmd('filetype plugin on')
  vim.cmd.packloadall({ bang = true })
end

function M.open(path)
  vim.cmd.edit(vim.fn.fnameescape(path))
  return vim.api.nvim_get_current_buf()
end

function M.client()
  return vim.lsp.get_clients({ name = 'nexus' })[1]
end

--- The process of the shared daemon, or nil.
function M.shared_daemon()
  local lock = vim.fn.glob(vim.env.XDG_RUNTIME_DIR .. '/nexus/*.lock')
  return lock ~= '' and tonumber(vim.fn.readfile(lock)[1]) or nil
end

--- Open a file and wait until Nexus is attached to it.
function M.open_attached(path)
  local buffer = M.open(path)
  M.wait('attached to ' .. path, function()
    return #vim.lsp.get_clients({ name = 'nexus', bufnr = buffer }) > 0
  end)
  return buffer
end

--- Diagnostics as a user finds them: lines and byte columns from 1.
function M.diagnostics(buffer)
  return vim
    .iter(vim.diagnostic.get(buffer))
    :map(function(each)
      return {
        at = ('%d:%d-%d:%d'):format(each.lnum + 1, each.col + 1, each.end_lnum + 1, each.end_col + 1),
        severity = vim.diagnostic.severity[each.severity],
        source = each.source,
        code = each.code,
        message = each.message,
      }
    end)
    :totable()
end

--- Wait until a buffer has diagnostics of exactly these codes, in the order of the text, then give them.
function M.wait_diagnostics(buffer, codes)
  local found
  M.wait(('%s in %s'):format(vim.inspect(codes), vim.api.nvim_buf_get_name(buffer)), function()
    found = M.diagnostics(buffer)
    return vim.deep_equal(
      codes,
      vim.tbl_map(function(each)
        return each.code
      end, found)
    )
  end)
  return found
end

function M.text(buffer)
  return table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), '\n')
end

--- Put a line in place of another, as typing does: nothing is saved.
function M.replace_line(buffer, number, text)
  vim.api.nvim_buf_set_lines(buffer, number - 1, number, true, { text })
end

--- A request's result; raises the daemon's error.
function M.request(method, params)
  local answer, failure = M.client():request_sync(method, params, PATIENCE_MS)
  assert(answer, method .. ': ' .. tostring(failure))
  assert(not answer.err, method .. ': ' .. vim.inspect(answer.err))
  return answer.result
end

--- Run a user command, or a function, and wait for the page that it opens: its buffer, in the current window.
function M.open_page(command, view)
  if type(command) == 'function' then
    command()
  else
    vim.cmd(command)
  end
  local buffer
  M.wait('page of ' .. tostring(command), function()
    buffer = vim.fn.bufnr('^nexus://' .. view)
    return buffer > 0 and buffer == vim.api.nvim_get_current_buf()
  end)
  return buffer
end

--- What a user sees of a page; closed with its own key.
function M.read_page(command, view)
  local buffer = M.open_page(command, view)
  local seen = {
    text = M.text(buffer),
    filetype = vim.bo[buffer].filetype,
    modifiable = vim.bo[buffer].modifiable,
    float = vim.api.nvim_win_get_config(0).relative ~= '',
  }
  vim.api.nvim_feedkeys('q', 'x', false)
  seen.closed = not vim.api.nvim_buf_is_valid(buffer)
  return seen
end

--- Where Enter leads from the line of a page that starts with a text.
function M.follow(command, view, start)
  local buffer = M.open_page(command, view)
  for number, line in ipairs(vim.api.nvim_buf_get_lines(buffer, 0, -1, false)) do
    if vim.startswith(line, start) then
      vim.api.nvim_win_set_cursor(0, { number, 0 })
    end
  end
  vim.api.nvim_feedkeys(vim.keycode('<CR>'), 'x', false)
  return ('%s:%d'):format(vim.api.nvim_buf_get_name(0), vim.fn.line('.'))
end

--- Run the steps and write what was seen, with the failure if there was one.
function M.run(steps)
  local ok, failure = xpcall(steps, debug.traceback)
  M.seen.failure = not ok and failure or nil
  local file = assert(io.open(vim.env.NEXUS_TEST_SEEN, 'w'))
  file:write(vim.json.encode(M.seen))
  file:close()
end

return M
